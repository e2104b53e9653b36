//! Results as tables: CSV, one row a node, without the flips themselves.

use std::io::{self, Write};

use super::Record;
use crate::graph::Graph;
use crate::ids::NodeId;

/// Writes a table.
#[derive(Debug)]
pub struct TableWriter<W: Write> {
    writer: csv::Writer<W>,
    names: Option<Vec<String>>,
}

impl<W: Write> TableWriter<W> {
    /// Begins a table of records about nodes of `graph`, with a column of their names if they have some.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin<R: Record>(out: W, graph: &Graph) -> io::Result<Self> {
        Self::with_columns(out, graph, R::COLUMNS.iter().copied())
    }

    /// Begins a table with these columns after those of nodes and their names.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn with_columns<'a>(out: W, graph: &Graph, columns: impl Iterator<Item = &'a str>) -> io::Result<Self> {
        let mut table = Self { writer: csv::Writer::from_writer(out), names: graph.names().nodes.clone() };
        let name = table.names.is_some().then_some("name");
        table.writer.write_record(std::iter::once("node").chain(name).chain(columns)).map_err(as_written)?;
        Ok(table)
    }

    /// Writes the row of a record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record<R: Record>(&mut self, record: &R) -> io::Result<()> {
        self.row(record.node(), record.cells())
    }

    /// Writes the row of a node.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn row(&mut self, node: NodeId, cells: impl IntoIterator<Item = String>) -> io::Result<()> {
        let name = self.names.as_ref().map(|names| plain(names.get(node.index()).map_or("", String::as_str)));
        let cells = std::iter::once(node.to_string()).chain(name).chain(cells);
        self.writer.write_record(cells).map_err(as_written)
    }

    /// Hands everything on.
    ///
    /// # Errors
    /// If that fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends the table, and gives back what was written to.
    ///
    /// # Errors
    /// If the last rows cannot be handed on.
    pub fn into_inner(self) -> io::Result<W> {
        self.writer.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

/// A name that no spreadsheet takes for a formula, and without control characters: `'` comes before a name that begins with
/// `=`, `+`, `-` or `@`, and `\u{…}` stands for a control character.
fn plain(name: &str) -> String {
    let mut text = String::new();
    if name.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        text.push('\'');
    }
    for character in name.chars() {
        if character.is_control() { text.extend(character.escape_default()) } else { text.push(character) }
    }
    text
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
    use super::*;
    use crate::certificate::{Bound, Certificate, Evidence, Witness};
    use crate::edge::Edge;
    use crate::flip::Flip;
    use crate::graph::Names;
    use crate::ids::{AttributeId, ClassId, NodeId};

    #[test]
    fn names_are_quoted_and_missing_values_empty() {
        let names = ["plain", "a \"b\", c", "=1+1", "-x\ny"].map(str::to_owned).to_vec();
        let graph = Graph::new(4, 3, &[], &[]).unwrap();
        let graph = graph.with_names(Names { nodes: Some(names), ..Names::default() }).unwrap();
        let certificate = |node, evidence, margin| {
            let margins = vec![Some(margin), None];
            Certificate::new(NodeId(node), ClassId(1), ClassId(1), evidence, margins)
        };
        let edges = [(0, 3), (1, 2)].map(|(a, b)| Edge::between(NodeId(a), NodeId(b)).unwrap());
        let witness = Witness::new(vec![Flip::of(&graph, NodeId(1), AttributeId(2))], ClassId(0), -0.25);
        let witness = witness.with_edges(edges.to_vec());
        let open = Evidence::Open { lower: Bound::Unknown, upper: None, because: None };
        let mut nonrobust = certificate(1, Evidence::Witness(witness), Bound::AtLeast(-0.5));
        (nonrobust.label, nonrobust.branches) = (Some(ClassId(1)), 7);
        let mut bytes = Vec::new();
        let mut table = TableWriter::begin::<Certificate>(&mut bytes, &graph).unwrap();
        table.record(&certificate(0, Evidence::Robust, Bound::AtLeast(0.5))).unwrap();
        table.record(&nonrobust).unwrap();
        table.record(&certificate(2, Evidence::Robust, Bound::Positive)).unwrap();
        table.record(&certificate(3, open, Bound::Unknown)).unwrap();
        table.flush().unwrap();
        drop(table);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "node,name,label,predicted,class,verdict,margin,worst_class,flips,witness_margin,engine,branches,deleted_edges\n\
             0,plain,,1,1,robust,0.5,0,,,fast,0,\n\
             1,\"a \"\"b\"\", c\",1,1,1,nonrobust,-0.5,0,3,-0.25,fast,7,0–3; 1–2\n\
             2,'=1+1,,1,1,robust,positive,0,,,fast,0,\n\
             3,'-x\\ny,,1,1,undecided,,0,,,fast,0,\n"
        );
    }
}
