//! Graphs on file, in either layout.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;

use super::{Cleaning, Graph, GraphError, GraphOptions, flat};
use crate::npz::{Archive, NpzError};

impl Graph {
    /// Reads a graph from an `.npz` file in the sparse-graph layout or from a `.graph` file, whatever its name, and says what was cleaned.
    ///
    /// Edges in a `.graph` file stay as they are, self-loops and directions included.
    ///
    /// # Errors
    /// If the file is unreadable, damaged or not in one of these layouts, or if it holds attributes that are neither bits nor bits divided by
    /// the number of ones in their row, and it neither says that they are real values, nor does [`GraphOptions::real_values`] or
    /// [`GraphOptions::binarise`].
    pub fn read(path: impl AsRef<Path>, options: GraphOptions) -> Result<(Self, Cleaning), GraphError> {
        let path = path.as_ref();
        let io_error = |source| NpzError::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(io_error)?;
        let (graph, mut cleaning) = if flat::begins(&mut file).map_err(io_error)? {
            let length = file.metadata().map_err(io_error)?.len();
            flat::read(path, &mut file, length)?.read_as(options)?
        } else {
            Self::from_archive(Archive::of_file(path, file)?, options)?
        };
        if !options.largest_component {
            return Ok((graph, cleaning));
        }
        let largest = graph.largest_component();
        cleaning.nodes_dropped = graph.nodes() - largest.nodes();
        Ok((largest, cleaning))
    }

    /// The bytes of a `.graph` file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        flat::write(self, &mut file).expect("memory can be written to");
        file.into_inner()
    }

    /// The graph whose `.graph` file has these bytes; errors call it `name`.
    ///
    /// # Errors
    /// If they are not those of one.
    pub fn of_bytes(bytes: &[u8], name: impl AsRef<Path>) -> Result<Self, GraphError> {
        flat::read(name.as_ref(), &mut &*bytes, bytes.len() as u64)
    }

    /// Writes the graph so that [`Graph::read`] reads it: in the `.graph` layout if that is how the name ends, else as an `.npz`, which has no
    /// place for [`Graph::binarised`]. The same graph gives the same bytes.
    ///
    /// # Errors
    /// If the file cannot be written; an existing file is then left as it was.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), GraphError> {
        let path = path.as_ref();
        let is_flat = path.extension().is_some_and(|ending| ending == "graph");
        let written =
            crate::files::replace(
                path,
                |file| if is_flat { flat::write(self, file) } else { self.write_members(file) },
            );
        written.map_err(|source| GraphError::Write { path: path.to_owned(), source })
    }
}
