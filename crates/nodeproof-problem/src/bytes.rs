//! Numbers as the bytes that files and fingerprints have: little-endian, wherever the program runs.

use std::borrow::Cow;

use bytemuck::Pod;

/// Numbers that are stored as they lie in memory, where that is little-endian.
pub(crate) trait Number: Pod + Default {
    /// NumPy's name of the type on file.
    const TYPE: &'static str;

    /// The number whose bytes on this machine are those of `self` on a little-endian one, and the other way round.
    fn turned(self) -> Self;
}

macro_rules! integers {
    ($($type:ty: $name:literal),*) => {$(
        impl Number for $type {
            const TYPE: &'static str = $name;
            fn turned(self) -> Self {
                self.to_le()
            }
        }
    )*};
}
integers!(u8: "|u1", i32: "<i4", u32: "<u4", u64: "<u8");

impl Number for f64 {
    const TYPE: &'static str = "<f8";
    fn turned(self) -> Self {
        Self::from_bits(self.to_bits().to_le())
    }
}

/// The bytes of all numbers.
pub(crate) fn of<T: Number>(numbers: &[T]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytemuck::cast_slice(numbers));
    }
    let turned: Vec<T> = numbers.iter().map(|&number| number.turned()).collect();
    Cow::Owned(bytemuck::cast_slice(&turned).to_vec())
}

/// Numbers whose bytes `fill` fills in.
pub(crate) fn read<T: Number, E>(count: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Vec<T>, E> {
    let mut numbers = vec![T::default(); count];
    fill(bytemuck::cast_slice_mut(&mut numbers))?;
    if cfg!(target_endian = "big") {
        numbers.iter_mut().for_each(|number| *number = number.turned());
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_little_endian() {
        assert_eq!(&*of(&[1u32, 0x0203]), [1, 0, 0, 0, 3, 2, 0, 0]);
        assert_eq!(&*of(&[-2.5f64]), (-2.5f64).to_le_bytes());
        let read = read::<i32, ()>(1, |bytes| {
            bytes.copy_from_slice(&[0xfe, 0xff, 0xff, 0xff]);
            Ok(())
        });
        assert_eq!(read.unwrap(), [-2]);
    }
}
