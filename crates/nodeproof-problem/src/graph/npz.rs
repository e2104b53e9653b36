//! The sparse-graph `.npz` layout of robust-gcn, graph2gauss and gnn-benchmark: `adj_*` and `attr_*` in compressed
//! row form, or `attr_matrix` as it is, `labels`, and optional names.

use std::fs::File;
use std::io::BufWriter;

use super::{Cleaning, Graph, GraphError, GraphOptions, LARGEST_LABEL, Names, check_length};
use crate::attributes::AttributeKind;
use crate::ids::ClassId;
use crate::matrix::Matrix;
use crate::npz::{Archive, ArchiveWriter, NpzError};
use crate::sparse::Pattern;
use crate::values::Values;

const LAYOUT: &str = "a graph needs adj_data, adj_indices, adj_indptr, adj_shape, the same four as attr_* or \
                      attr_matrix, and may have labels, node_names, attr_names and class_names";

/// A member of files whose edges are read as they are, self-loops and directions included.
const EDGES_AS_THEY_ARE: &str = "edges_as_they_are";
/// A member of files whose attributes are divided by the number of ones in their row, even if no row has two.
const NORMALISED_ROWS: &str = "normalised_rows";
/// Attributes row by row, zeros included.
const MATRIX: &str = "attr_matrix";
/// The lowest and the highest value of each attribute: members of files whose attributes are real values.
const RANGES: [&str; 2] = ["attr_low", "attr_high"];

impl Graph {
    pub(super) fn from_archive(
        mut archive: Archive,
        mut options: GraphOptions,
    ) -> Result<(Self, Cleaning), GraphError> {
        if archive.contains(EDGES_AS_THEY_ARE) {
            (options.directed, options.keep_self_loops) = (true, true);
        }
        options.normalise_rows |= archive.contains(NORMALISED_ROWS) && !options.binarise;
        let mut cleaning = Cleaning::default();

        let adjacency = read_csr(&mut archive, "adj", "adjacency")?;
        if adjacency.rows != adjacency.columns {
            return Err(GraphError::NotSquare { rows: adjacency.rows, columns: adjacency.columns });
        }
        let nodes = adjacency.rows;
        let edges = clean_edges(adjacency, options, &mut cleaning)?;
        let attributes = AttributesOnFile::read(&mut archive)?;
        check_length("the attribute matrix", attributes.shape().0, nodes, "nodes")?;
        let ranges = if options.binarise { None } else { read_ranges(&mut archive)? };
        let mut graph = Self::of_stored(edges, attributes, ranges, options, &mut cleaning)?;
        if let Some(labels) = read_labels(&mut archive)? {
            graph = graph.with_labels(labels)?;
        }
        let names = Names {
            nodes: read_names(&mut archive, "node_names")?,
            attributes: read_names(&mut archive, "attr_names")?,
            classes: read_names(&mut archive, "class_names")?,
        };
        cleaning.members_skipped = skipped_members(&archive, &names);
        graph = graph.with_names(names)?.with_binarised(cleaning.attributes_binarised);
        Ok((graph, cleaning))
    }

    /// A graph with these edges, of whose attributes networks read what `options` say.
    fn of_stored(
        edges: Pattern,
        attributes: AttributesOnFile,
        ranges: Option<Vec<(f64, f64)>>,
        options: GraphOptions,
        cleaning: &mut Cleaning,
    ) -> Result<Self, GraphError> {
        let (rows, columns) = attributes.shape();
        // Without a row, a matrix may claim any number of columns.
        if rows == 0 || columns == 0 {
            return Err(GraphError::Empty { nodes: rows, attributes: columns });
        }
        if ranges.is_some() && options.normalise_rows {
            return Err(GraphError::RowsOfValues);
        }
        let graph = if options.real_values || ranges.is_some() {
            let values = attributes.values(cleaning)?;
            Self::of_parts(edges, Pattern::from_pairs(rows, columns, &[])).with_values(values)?
        } else {
            let (bits, are_normalised) = clean_attributes(attributes, options, cleaning)?;
            let normalise_rows = options.normalise_rows || are_normalised;
            let kind = GraphOptions { normalise_rows, real_values: false, ..options }.kind();
            Self::of_parts(edges, bits).of_kind(kind)?
        };
        match ranges {
            Some(ranges) => graph.with_ranges(ranges),
            None => Ok(graph),
        }
    }

    /// The graph of a file that has it as it is, of whose attributes networks read what `options` say, as they do of an `.npz` that was
    /// written for it.
    pub(super) fn read_as(self, mut options: GraphOptions) -> Result<(Self, Cleaning), GraphError> {
        let mut cleaning = Cleaning { edges_on_file: self.adjacency.entries(), ..Cleaning::default() };
        options.normalise_rows |= self.kind.is_normalised() && !options.binarise;
        let is_so = match self.kind {
            AttributeKind::Bits => options.kind().is_bits(),
            AttributeKind::NormalisedRows => options.kind().is_normalised() && !options.binarise,
            AttributeKind::RealValues => !options.normalise_rows && !options.binarise,
        };
        if is_so {
            return Ok((self, cleaning));
        }
        let Self { adjacency, attributes, values, binarised, labels, classes, names, .. } = self;
        let (attributes, ranges) = match values {
            Some(values) => {
                let ranges = (!options.binarise).then(|| values.ranges().to_vec());
                (AttributesOnFile::Dense(values.entries().clone()), ranges)
            }
            None => (AttributesOnFile::Sparse(CsrOnFile::of(attributes, self.kind)), None),
        };
        let made = Self::of_stored(adjacency, attributes, ranges, options, &mut cleaning)?;
        let binarised = binarised + cleaning.attributes_binarised;
        Ok((Self { binarised, labels, classes, names, ..made }, cleaning))
    }

    /// Writes the members of an archive, with a mark if the graph has self-loops or edges in one direction only, so that they are read as they
    /// are.
    pub(super) fn write_members(&self, file: &mut File) -> std::io::Result<()> {
        let mut archive = ArchiveWriter::new(BufWriter::new(file));
        write_csr(&mut archive, "adj", &self.adjacency, AttributeKind::Bits)?;
        match &self.values {
            None => write_csr(&mut archive, "attr", &self.attributes, self.kind)?,
            Some(values) => {
                archive.matrix(MATRIX, values.entries())?;
                let ends: (Vec<f64>, Vec<f64>) = values.ranges().iter().copied().unzip();
                archive.floats(RANGES[0], &ends.0)?;
                archive.floats(RANGES[1], &ends.1)?;
            }
        }
        if self.has_unusual_edges() {
            archive.integers(EDGES_AS_THEY_ARE, &[1i64])?;
        }
        if self.kind.is_normalised() {
            archive.integers(NORMALISED_ROWS, &[1i64])?;
        }
        if let Some(labels) = &self.labels {
            let labels: Vec<i64> = labels.iter().map(|label| label.map_or(-1, |class| class.0.into())).collect();
            archive.integers("labels", &labels)?;
        }
        let names = [
            ("node_names", &self.names.nodes),
            ("attr_names", &self.names.attributes),
            ("class_names", &self.names.classes),
        ];
        for (member, names) in names {
            if let Some(names) = names {
                archive.strings(member, names)?;
            }
        }
        std::io::Write::flush(&mut archive.finish()?)
    }
}

/// A compressed-row matrix on file, checked to be well formed.
struct CsrOnFile {
    matrix: &'static str,
    rows: usize,
    columns: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
    /// None if all are 1.
    values: Option<Vec<f64>>,
}

impl CsrOnFile {
    /// Attributes of a kind as an `.npz` has them.
    fn of(bits: Pattern, kind: AttributeKind) -> Self {
        let (rows, columns) = (bits.rows(), bits.columns());
        let values = kind.is_normalised().then(|| divided(&bits, kind));
        let (offsets, indices) = bits.into_parts();
        Self { matrix: "attributes", rows, columns, offsets, indices, values }
    }

    /// The matrix as it is, if all values are 1, and the columns of each row ascend.
    fn into_clean(mut self) -> Result<Pattern, Self> {
        if self.values.is_some() {
            return Err(self);
        }
        let (offsets, indices) = (std::mem::take(&mut self.offsets), std::mem::take(&mut self.indices));
        Pattern::from_sorted(self.columns, offsets, indices).map_err(|(offsets, indices)| Self {
            offsets,
            indices,
            ..self
        })
    }

    /// `(row, column, value)` with repeated positions summed, as SciPy understands them, sorted; and how many repeats
    /// there were.
    fn summed_entries(&self) -> (Vec<(u32, u32, f64)>, usize) {
        let mut entries: Vec<(u32, u32, f64)> = Vec::with_capacity(self.indices.len());
        let mut repeats = 0;
        let mut row_entries = Vec::new();
        for row in 0..self.rows {
            let range = self.offsets[row]..self.offsets[row + 1];
            row_entries.clear();
            let value = |place: usize| self.values.as_ref().map_or(1.0, |values| values[place]);
            row_entries.extend(range.map(|place| (self.indices[place], value(place))));
            row_entries.sort_by_key(|&(column, _)| column);
            let first = entries.len();
            for &(column, value) in &row_entries {
                match entries[first..].last_mut() {
                    Some(last) if last.1 == column => {
                        last.2 += value;
                        repeats += 1;
                    }
                    _ => entries.push((row as u32, column, value)),
                }
            }
        }
        (entries, repeats)
    }

    fn check_finite(&self, row: u32, column: u32, value: f64) -> Result<(), GraphError> {
        if value.is_finite() {
            return Ok(());
        }
        Err(GraphError::NotFinite { matrix: self.matrix, row: row as usize, column, value })
    }
}

fn read_csr(archive: &mut Archive, prefix: &str, matrix: &'static str) -> Result<CsrOnFile, GraphError> {
    let integers = |archive: &mut Archive, member: &str| -> Result<Vec<u64>, NpzError> {
        let name = format!("{prefix}_{member}");
        let array = archive.array(&name, LAYOUT)?;
        let numbers = (array.shape().len() == 1).then(|| array.integers()).flatten();
        let numbers = numbers.ok_or_else(|| archive.error(&name, "must be a one-dimensional array of integers"))?;
        numbers
            .into_iter()
            .map(|i| u64::try_from(i).map_err(|_| archive.error(&name, format!("holds the negative number {i}"))))
            .collect()
    };
    let shape = integers(archive, "shape")?;
    let offsets = integers(archive, "indptr")?;
    let member = |name: &str| format!("{prefix}_{name}");
    let array = archive.array(&member("indices"), LAYOUT)?;
    let small = (array.shape().len() == 1).then(|| array.small_integers()).flatten();
    drop(array);
    // Wider ones are no columns, but an error names them.
    let (indices, wide) = match small {
        Some(indices) => (indices, None),
        None => {
            let wide = integers(archive, "indices")?;
            (wide.iter().map(|&column| u32::try_from(column).unwrap_or(u32::MAX)).collect(), Some(wide))
        }
    };
    let array = archive.array(&member("data"), LAYOUT)?;
    let is_list = array.shape().len() == 1;
    let (count, is_ones) = (array.shape().first().copied().unwrap_or(0), is_list && array.is_ones());
    let values = if is_ones { None } else { array.floats().filter(|_| is_list) };
    if !is_ones && values.is_none() {
        return Err(archive.error(&member("data"), "must be a one-dimensional array of numbers").into());
    }
    let &[rows, columns] = &shape[..] else {
        return Err(archive.error(&member("shape"), "must hold two numbers, rows and columns").into());
    };
    for (what, count) in [("rows", rows), ("columns", columns)] {
        if count >= u64::from(u32::MAX) {
            let problem = format!("claims {count} {what}; at most {} are supported", u32::MAX - 1);
            return Err(archive.error(&member("shape"), problem).into());
        }
    }
    if offsets.len() as u64 != rows + 1 {
        let problem = format!("has {} entries; a matrix of {rows} rows needs {}", offsets.len(), rows + 1);
        return Err(archive.error(&member("indptr"), problem).into());
    }
    if indices.len() != count || offsets.last() != Some(&(indices.len() as u64)) || offsets[0] != 0 {
        let problem = format!(
            "runs from {} to {}, but there are {} indices and {} values; all must agree",
            offsets[0],
            offsets[offsets.len() - 1],
            indices.len(),
            count
        );
        return Err(archive.error(&member("indptr"), problem).into());
    }
    if let Some(row) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(archive.error(&member("indptr"), format!("decreases after row {row}")).into());
    }
    let offsets: Vec<usize> = offsets.into_iter().map(|offset| offset as usize).collect();
    let columns = columns as usize;
    if let Some(position) = indices.iter().position(|&column| column as usize >= columns) {
        let row = offsets.partition_point(|&offset| offset <= position) - 1;
        let column = wide.map_or(indices[position].into(), |wide| wide[position]);
        return Err(GraphError::OutOfRange { matrix, row, column, columns });
    }
    Ok(CsrOnFile { matrix, rows: rows as usize, columns, offsets, indices, values })
}

/// Every entry other than zero is an edge. A matrix that is clean already stays as it is.
fn clean_edges(adjacency: CsrOnFile, options: GraphOptions, cleaning: &mut Cleaning) -> Result<Pattern, GraphError> {
    let edges = match adjacency.into_clean() {
        Ok(edges) => edges,
        Err(adjacency) => stored_edges(&adjacency, cleaning)?,
    };
    cleaning.edges_on_file = edges.entries();
    if !options.keep_self_loops {
        cleaning.self_loops_removed = (0..edges.rows()).filter(|&node| edges.contains(node, node as u32)).count();
    }
    if !options.directed && !edges.is_symmetric() {
        cleaning.directed_edges = edges.iter().filter(|&(a, b)| !edges.contains(b as usize, a)).count();
    }
    let is_clean = cleaning.self_loops_removed == 0 && cleaning.directed_edges == 0;
    Ok(if is_clean { edges } else { options.adjacency(edges.rows(), || edges.iter()) })
}

/// The entries other than zero, those of one place added up.
fn stored_edges(adjacency: &CsrOnFile, cleaning: &mut Cleaning) -> Result<Pattern, GraphError> {
    let (entries, repeats) = adjacency.summed_entries();
    cleaning.duplicate_edges = repeats;
    let mut edges = Vec::with_capacity(entries.len());
    for (row, column, weight) in entries {
        adjacency.check_finite(row, column, weight)?;
        if weight != 0.0 {
            cleaning.weights_ignored += usize::from(weight != 1.0);
            edges.push((row, column));
        }
    }
    Ok(Pattern::from_pairs(adjacency.rows, adjacency.rows, &edges))
}

/// Attributes as they are stored.
enum AttributesOnFile {
    Sparse(CsrOnFile),
    Dense(Matrix),
}

impl AttributesOnFile {
    fn read(archive: &mut Archive) -> Result<Self, GraphError> {
        if !archive.contains(MATRIX) {
            return Ok(Self::Sparse(read_csr(archive, "attr", "attributes")?));
        }
        let array = archive.array(MATRIX, LAYOUT)?;
        let shape = <[usize; 2]>::try_from(array.shape()).ok();
        let problem = "must be a two-dimensional array of numbers, one row a node";
        match shape.zip(array.floats()) {
            Some(([rows, columns], values)) => Ok(Self::Dense(Matrix::from_values(rows, columns, values))),
            None => Err(archive.error(MATRIX, problem).into()),
        }
    }

    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Sparse(attributes) => (attributes.rows, attributes.columns),
            Self::Dense(attributes) => (attributes.rows(), attributes.columns()),
        }
    }

    /// `(row, column, value)`, sorted: those on file, or those that are not 0.
    fn entries(self, cleaning: &mut Cleaning) -> Result<Vec<(u32, u32, f64)>, GraphError> {
        let entries = match self {
            Self::Sparse(attributes) => {
                let (entries, repeats) = attributes.summed_entries();
                cleaning.duplicate_attributes = repeats;
                entries
            }
            Self::Dense(attributes) => {
                let row = |row: usize| {
                    let entries = attributes.row(row).iter().zip(0u32..).filter(|&(&value, _)| value != 0.0);
                    entries.map(move |(&value, column)| (row as u32, column, value))
                };
                (0..attributes.rows()).flat_map(row).collect()
            }
        };
        match entries.iter().find(|(.., value)| !value.is_finite()) {
            Some(&(row, column, value)) => {
                Err(GraphError::NotFinite { matrix: "attributes", row: row as usize, column, value })
            }
            None => Ok(entries),
        }
    }

    /// All entries as real values.
    fn values(self, cleaning: &mut Cleaning) -> Result<Values, GraphError> {
        let (rows, columns) = self.shape();
        let dense = match self {
            Self::Dense(attributes) => attributes,
            sparse => {
                let entries = sparse.entries(cleaning)?;
                let mut dense = Values::zeros(rows, columns, entries.len())?;
                for (row, column, value) in entries {
                    dense.row_mut(row as usize)[column as usize] = value;
                }
                dense
            }
        };
        Values::new(dense)
    }
}

/// The range of each attribute, if the file has any.
fn read_ranges(archive: &mut Archive) -> Result<Option<Vec<(f64, f64)>>, NpzError> {
    if !RANGES.iter().any(|member| archive.contains(member)) {
        return Ok(None);
    }
    let mut ends = Vec::new();
    for member in RANGES {
        let array = archive.array(member, "real values need attr_low and attr_high, one number an attribute")?;
        let numbers = (array.shape().len() == 1).then(|| array.floats()).flatten();
        ends.push(numbers.ok_or_else(|| archive.error(member, "must be a one-dimensional array of numbers"))?);
    }
    let (high, low) = (ends.pop().unwrap_or_default(), ends.pop().unwrap_or_default());
    if low.len() != high.len() {
        let problem = format!("has {} entries and {} has {}; give one an attribute", high.len(), RANGES[0], low.len());
        return Err(archive.error(RANGES[1], problem));
    }
    Ok(Some(low.into_iter().zip(high).collect()))
}

/// Where attributes are 1, or that divided by the number of ones in their row; and whether they are.
fn clean_attributes(
    attributes: AttributesOnFile,
    options: GraphOptions,
    cleaning: &mut Cleaning,
) -> Result<(Pattern, bool), GraphError> {
    let (rows, columns) = attributes.shape();
    let attributes = match attributes {
        AttributesOnFile::Sparse(attributes) => match attributes.into_clean() {
            Ok(bits) => return Ok((bits, false)),
            Err(attributes) => AttributesOnFile::Sparse(attributes),
        },
        dense => dense,
    };
    let entries = attributes.entries(cleaning)?;
    let normalised = !options.binarise && AttributeKind::are_normalised_rows(&entries);
    let mut pairs = Vec::with_capacity(entries.len());
    for (node, attribute, value) in entries {
        if value == 0.0 {
            cleaning.attribute_zeros += 1;
            continue;
        }
        if value != 1.0 && !normalised {
            if !options.binarise {
                return Err(GraphError::NotBinary { node: node as usize, attribute, value });
            }
            cleaning.attributes_binarised += 1;
        }
        if value > 0.0 {
            pairs.push((node, attribute));
        }
    }
    Ok((Pattern::from_pairs(rows, columns, &pairs), normalised))
}

/// Labels of any integer type; negative ones mean that a node has none.
fn read_labels(archive: &mut Archive) -> Result<Option<Vec<Option<ClassId>>>, NpzError> {
    if !archive.contains("labels") {
        return Ok(None);
    }
    let array = archive.array("labels", LAYOUT)?;
    let labels = (array.shape().len() == 1).then(|| array.integers()).flatten();
    let labels = labels.ok_or_else(|| {
        archive.error("labels", "must be a one-dimensional array of integers, one class number a node (-1 for none)")
    })?;
    if let Some(label) = labels.iter().find(|&&label| label > LARGEST_LABEL) {
        let problem = format!("holds the class number {label}; at most {LARGEST_LABEL} is supported");
        return Err(archive.error("labels", problem));
    }
    Ok(Some(labels.into_iter().map(|label| u32::try_from(label).ok().map(ClassId)).collect()))
}

/// A list of names; `None` if it is missing or pickled.
fn read_names(archive: &mut Archive, member: &str) -> Result<Option<Vec<String>>, NpzError> {
    if !archive.contains(member) {
        return Ok(None);
    }
    let array = archive.array(member, LAYOUT)?;
    if array.is_pickled() {
        return Ok(None);
    }
    if let Some(names) = array.strings() {
        return Ok(Some(names));
    }
    let numbers = array.integers().ok_or_else(|| archive.error(member, "must be an array of strings"))?;
    Ok(Some(numbers.into_iter().map(|number| number.to_string()).collect()))
}

fn skipped_members(archive: &Archive, names: &Names) -> Vec<String> {
    let read = |member: &str| match member {
        "node_names" => names.nodes.is_some(),
        "attr_names" => names.attributes.is_some(),
        "class_names" => names.classes.is_some(),
        "labels" | EDGES_AS_THEY_ARE | NORMALISED_ROWS | MATRIX => true,
        member if RANGES.contains(&member) => true,
        _ => ["adj_", "attr_"].iter().any(|prefix| {
            member.strip_prefix(prefix).is_some_and(|rest| matches!(rest, "data" | "indices" | "indptr" | "shape"))
        }),
    };
    archive.names().iter().filter(|member| !read(member)).cloned().collect()
}

/// What networks read of the ones of each row.
fn divided(bits: &Pattern, kind: AttributeKind) -> Vec<f64> {
    let rows = (0..bits.rows()).map(|row| bits.row(row).len());
    rows.flat_map(|ones| std::iter::repeat_n(1.0 / kind.divisor(ones), ones)).collect()
}

fn write_csr<W: std::io::Write + std::io::Seek>(
    archive: &mut ArchiveWriter<W>,
    prefix: &str,
    pattern: &Pattern,
    kind: AttributeKind,
) -> std::io::Result<()> {
    let offsets: Vec<i64> = pattern.offsets().iter().map(|&offset| offset as i64).collect();
    if kind.is_bits() {
        archive.ones(&format!("{prefix}_data"), pattern.entries())?;
    } else {
        archive.floats(&format!("{prefix}_data"), &divided(pattern, kind))?;
    }
    if pattern.columns() <= i32::MAX as usize {
        let indices: Vec<i32> = pattern.indices().iter().map(|&index| index as i32).collect();
        archive.integers(&format!("{prefix}_indices"), &indices)?;
    } else {
        let indices: Vec<i64> = pattern.indices().iter().map(|&index| index.into()).collect();
        archive.integers(&format!("{prefix}_indices"), &indices)?;
    }
    archive.integers(&format!("{prefix}_indptr"), &offsets)?;
    archive.integers(&format!("{prefix}_shape"), &[pattern.rows() as i64, pattern.columns() as i64])
}
