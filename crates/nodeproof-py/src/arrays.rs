//! NumPy's arrays, read where they lie and made without copying.

use nodeproof::{NodeId, Pattern, SparseMatrix};
use numpy::ndarray::{ArrayView, Dimension, Ix1, Ix2};
use numpy::{Element, IntoPyArray, PyReadonlyArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::Failure;

/// An array that Rust may read where it lies. One that is not aligned, as in a message from another process or in a packed record,
/// is copied first: a reference to its elements would be undefined behaviour.
pub(crate) struct Array<'py, T: Element, D: Dimension>(PyReadonlyArray<'py, T, D>);

/// A vector.
pub(crate) type Array1<'py, T> = Array<'py, T, Ix1>;

/// A matrix.
pub(crate) type Array2<'py, T> = Array<'py, T, Ix2>;

impl<'py, T: Element, D: Dimension + 'py> FromPyObject<'_, 'py> for Array<'py, T, D> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array: PyReadonlyArray<'py, T, D> = object.extract()?;
        if array.getattr("flags")?.getattr("aligned")?.extract()? {
            Ok(Self(array))
        } else {
            Ok(Self(object.call_method0("copy")?.extract()?))
        }
    }
}

impl<T: Element, D: Dimension> Array<'_, T, D> {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Its elements.
    pub(crate) fn view(&self) -> ArrayView<'_, T, D> {
        self.0.as_array()
    }
}

/// An array of row starts or column ids.
#[derive(FromPyObject)]
pub(crate) enum Ids<'py> {
    /// 32 bits, SciPy's usual choice.
    Narrow(Array1<'py, i32>),
    /// 64 bits.
    Wide(Array1<'py, i64>),
}

impl Ids<'_> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    /// What reads the entry at a position.
    pub(crate) fn reader(&self) -> Box<dyn Fn(usize) -> i64 + '_> {
        match self {
            Self::Narrow(ids) => {
                let ids = ids.view();
                Box::new(move |position| ids[position].into())
            }
            Self::Wide(ids) => {
                let ids = ids.view();
                Box::new(move |position| ids[position])
            }
        }
    }
}

/// An array of values.
#[derive(FromPyObject)]
pub(crate) enum Values<'py> {
    /// Doubles.
    Double(Array1<'py, f64>),
    /// Floats.
    Single(Array1<'py, f32>),
    /// Truth values.
    Truth(Array1<'py, bool>),
    /// 64-bit integers.
    Wide(Array1<'py, i64>),
    /// 32-bit integers.
    Narrow(Array1<'py, i32>),
    /// Bytes with a sign.
    Signed(Array1<'py, i8>),
    /// Bytes without.
    Byte(Array1<'py, u8>),
}

impl Values<'_> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Double(values) => values.len(),
            Self::Single(values) => values.len(),
            Self::Truth(values) => values.len(),
            Self::Wide(values) => values.len(),
            Self::Narrow(values) => values.len(),
            Self::Signed(values) => values.len(),
            Self::Byte(values) => values.len(),
        }
    }

    /// What reads the entry at a position.
    pub(crate) fn reader(&self) -> Box<dyn Fn(usize) -> f64 + '_> {
        fn of<'a, T: Element + Copy>(
            values: &'a Array1<'_, T>,
            float: impl Fn(T) -> f64 + 'a,
        ) -> Box<dyn Fn(usize) -> f64 + 'a> {
            let values = values.view();
            Box::new(move |position| float(values[position]))
        }
        match self {
            Self::Double(values) => of(values, |value| value),
            Self::Single(values) => of(values, f64::from),
            Self::Truth(values) => of(values, |value| f64::from(u8::from(value))),
            Self::Wide(values) => of(values, |value| value as f64),
            Self::Narrow(values) => of(values, f64::from),
            Self::Signed(values) => of(values, f64::from),
            Self::Byte(values) => of(values, f64::from),
        }
    }
}

/// A matrix in compressed row form as SciPy has it.
pub(crate) struct Csr<'py> {
    /// What it is called in messages.
    pub(crate) matrix: &'static str,
    /// Row starts, with the number of entries at the end.
    pub(crate) offsets: Ids<'py>,
    /// Column ids.
    pub(crate) indices: Ids<'py>,
    /// Values.
    pub(crate) values: Values<'py>,
    /// Number of columns.
    pub(crate) columns: usize,
}

impl Csr<'_> {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// All entries as `(row, column, value)`, row by row.
    ///
    /// # Errors
    /// If it is not well formed.
    pub(crate) fn entries(&self) -> Result<Vec<(u32, u32, f64)>, Failure> {
        let fail =
            |problem: &str| Failure::input(format!("the {} is not a compressed row matrix: {problem}", self.matrix));
        let entries = self.indices.len();
        if self.values.len() != entries {
            return Err(fail("it has not as many values as column ids"));
        }
        let (offset, index, value) = (self.offsets.reader(), self.indices.reader(), self.values.reader());
        if self.offsets.len() == 0 || offset(0) != 0 || offset(self.rows()) != entries as i64 {
            return Err(fail("its row starts do not go from 0 to the number of entries"));
        }
        if u32::try_from(self.rows().max(self.columns)).is_err() {
            return Err(fail("it has more rows or columns than a 32-bit id can name"));
        }
        let mut all = Vec::with_capacity(entries);
        for row in 0..self.rows() {
            let (start, end) = (offset(row), offset(row + 1));
            if start < 0 || end < start || end > entries as i64 {
                return Err(fail("its row starts do not ascend"));
            }
            for position in start as usize..end as usize {
                let column = index(position);
                if !usize::try_from(column).is_ok_and(|column| column < self.columns) {
                    return Err(fail(&format!("row {row} has column {column} of {}", self.columns)));
                }
                all.push((row as u32, column as u32, value(position)));
            }
        }
        Ok(all)
    }
}

/// Node ids.
pub(crate) fn nodes(ids: &Array1<'_, u32>) -> Vec<NodeId> {
    ids.view().iter().map(|&id| NodeId(id)).collect()
}

/// Row starts and column ids of `pattern`, as SciPy wants them.
pub(crate) fn pattern<'py>(py: Python<'py>, pattern: &Pattern) -> PyResult<Bound<'py, PyTuple>> {
    let largest = pattern.entries().max(pattern.columns());
    if i32::try_from(largest).is_ok() {
        let offsets: Vec<i32> = pattern.offsets().iter().map(|&offset| offset as i32).collect();
        let indices: Vec<i32> = pattern.indices().iter().map(|&index| index as i32).collect();
        (offsets.into_pyarray(py), indices.into_pyarray(py)).into_pyobject(py)
    } else {
        let offsets: Vec<i64> = pattern.offsets().iter().map(|&offset| offset as i64).collect();
        let indices: Vec<i64> = pattern.indices().iter().map(|&index| i64::from(index)).collect();
        (offsets.into_pyarray(py), indices.into_pyarray(py)).into_pyobject(py)
    }
}

/// Values, row starts and column ids of `matrix`.
pub(crate) fn matrix<'py>(py: Python<'py>, matrix: &SparseMatrix) -> PyResult<Bound<'py, PyTuple>> {
    let ids = pattern(py, matrix.pattern())?;
    (matrix.values().to_vec().into_pyarray(py), ids.get_item(1)?, ids.get_item(0)?).into_pyobject(py)
}
