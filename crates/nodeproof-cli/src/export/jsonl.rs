//! JSON Lines: the header, then one node a line.

use std::io::{self, BufWriter, Write};

use super::{Exported, Exporter, Header};

/// Writes JSON Lines.
pub(crate) struct JsonLines<W: Write>(BufWriter<W>);

impl<W: Write> JsonLines<W> {
    /// Writes to `writer`.
    pub(crate) fn new(writer: W) -> Self {
        Self(BufWriter::new(writer))
    }
}

impl<W: Write, R: Exported> Exporter<R> for JsonLines<W> {
    fn begin(&mut self, header: &Header<R::About>) -> io::Result<()> {
        self.0.write_all(header.line()?.as_bytes())?;
        self.0.write_all(b"\n")?;
        // A run that is cut off during its first second must leave a file that says what it is.
        self.0.flush()
    }

    fn record(&mut self, record: &R) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, record)?;
        self.0.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use nodeproof_report::results::{Record, VerdictName};

    use super::*;
    use crate::export::record::tests::{header, record};

    #[test]
    fn one_line_each() {
        let mut bytes = Vec::new();
        let mut writer = JsonLines::new(&mut bytes);
        let lines: &mut dyn Exporter<Record> = &mut writer;
        lines.begin(&header(2)).unwrap();
        lines.record(&record(0, VerdictName::Robust)).unwrap();
        lines.record(&record(1, VerdictName::Undecided)).unwrap();
        lines.flush().unwrap();
        drop(writer);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("\"engine\":\"fast\"}\n"));
    }
}
