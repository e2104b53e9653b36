//! CSV: one row a node, without the flips themselves.

use std::io::{self, Write};

use super::{Exported, Exporter, Header};

/// Writes CSV.
pub(crate) struct Csv<W: Write> {
    writer: csv::Writer<W>,
    names: Option<Vec<String>>,
}

impl<W: Write> Csv<W> {
    /// Writes to `writer`.
    pub(crate) fn new(writer: W) -> Self {
        Self { writer: csv::Writer::from_writer(writer), names: None }
    }
}

impl<W: Write, R: Exported> Exporter<R> for Csv<W> {
    fn begin(&mut self, header: &Header<R::About>) -> io::Result<()> {
        self.names.clone_from(&header.names);
        let name = self.names.is_some().then_some("name");
        let written = self.writer.write_record(std::iter::once("node").chain(name).chain(R::COLUMNS.iter().copied()));
        written.map_err(as_written)
    }

    fn record(&mut self, record: &R) -> io::Result<()> {
        let name = self.names.as_ref().map(|names| names.get(record.node() as usize).cloned().unwrap_or_default());
        let cells = std::iter::once(record.node().to_string()).chain(name).chain(record.cells());
        self.writer.write_record(cells).map_err(as_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// What the writer below said, as it said it: whether a pipe is closed must not be lost.
fn as_written(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use nodeproof_report::results::{FlipRecord, Record, VerdictName};

    use super::*;
    use crate::export::record::tests::{header, record};

    #[test]
    fn names_are_quoted_and_missing_values_empty() {
        let mut bytes = Vec::new();
        let mut writer = Csv::new(&mut bytes);
        let csv: &mut dyn Exporter<Record> = &mut writer;
        csv.begin(&header(2)).unwrap();
        csv.record(&record(0, VerdictName::Robust)).unwrap();
        let mut nonrobust = record(1, VerdictName::Nonrobust);
        nonrobust.witness = Some(vec![FlipRecord { node: 1, attribute: 2, to: 1 }]);
        nonrobust.witness_margin = Some(-0.25);
        (nonrobust.label, nonrobust.branches) = (None, 7);
        csv.record(&nonrobust).unwrap();
        csv.flush().unwrap();
        drop(writer);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "node,name,label,predicted,class,verdict,margin,worst_class,flips,witness_margin,engine,branches\n\
             0,plain,1,1,1,robust,0.5,0,,,fast,0\n\
             1,\"a \"\"b\"\", c\",,1,1,nonrobust,0.5,0,1,-0.25,fast,7\n"
        );
    }
}
