//! CSV: one row a node, without the flips themselves.

use std::io::{self, Write};

use super::{Exporter, Header, Record};

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

impl<W: Write> Exporter for Csv<W> {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.names = header.names().map(<[String]>::to_vec);
        let name = self.names.is_some().then_some("name");
        let rest =
            ["label", "predicted", "class", "verdict", "margin", "worst_class", "flips", "witness_margin", "engine"];
        self.writer.write_record(std::iter::once("node").chain(name).chain(rest))?;
        Ok(())
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        let name = self.names.as_ref().map(|names| names.get(record.node as usize).cloned().unwrap_or_default());
        let or_empty = |value: Option<String>| value.unwrap_or_default();
        let rest = [
            or_empty(record.label.map(|label| label.to_string())),
            record.predicted.to_string(),
            record.class.to_string(),
            record.verdict.word().to_owned(),
            or_empty(record.margin().map(|margin| margin.to_string())),
            record.worst_class.to_string(),
            or_empty(record.witness.as_ref().map(|flips| flips.len().to_string())),
            or_empty(record.witness_margin.map(|margin| margin.to_string())),
            record.engine.name().to_owned(),
        ];
        self.writer.write_record(std::iter::once(record.node.to_string()).chain(name).chain(rest))?;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::export::VerdictName;
    use crate::export::record::FlipRecord;
    use crate::export::record::tests::{header, record};

    #[test]
    fn names_are_quoted_and_missing_values_empty() {
        let mut bytes = Vec::new();
        let mut csv = Csv::new(&mut bytes);
        csv.begin(&header(2)).unwrap();
        csv.record(&record(0, VerdictName::Robust)).unwrap();
        let mut nonrobust = record(1, VerdictName::Nonrobust);
        nonrobust.witness = Some(vec![FlipRecord { node: 1, attribute: 2, to: 1 }]);
        nonrobust.witness_margin = Some(-0.25);
        nonrobust.label = None;
        csv.record(&nonrobust).unwrap();
        csv.flush().unwrap();
        drop(csv);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "node,name,label,predicted,class,verdict,margin,worst_class,flips,witness_margin,engine\n\
             0,plain,1,1,1,robust,0.5,0,,,fast\n\
             1,\"a \"\"b\"\", c\",,1,1,nonrobust,0.5,0,1,-0.25,fast\n"
        );
    }
}
