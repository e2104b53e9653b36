//! The checksum by which a download is known to be the file it should be.

use std::fmt;
use std::str::FromStr;

use sha1::{Digest, Sha1};

/// The name that git gives to a file's content: the SHA-1 of `blob`, its size and itself. `git hash-object FILE` prints it.
///
/// To pass for a given file, another one would have to be a second preimage, which nobody can make for SHA-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum([u8; 20]);

impl Checksum {
    /// The checksum of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let header = format!("blob {}\0", bytes.len());
        Self(Sha1::new().chain_update(header).chain_update(bytes).finalize().into())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Checksum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a checksum; give the 40 digits that `git hash-object FILE` prints");
        if text.len() != 40 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 20];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_git() {
        // `git hash-object` of an empty file, and of `printf 'what is up, doc?'` (Pro Git, chapter 10.2).
        assert_eq!(Checksum::of(b"").to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(Checksum::of(b"what is up, doc?").to_string(), "bd9dbf5aae1a3862dd1526723246b20206e5fc37");
    }

    #[test]
    fn checksums_are_read_as_they_are_shown() {
        let sum = Checksum::of(b"x");
        assert_eq!(sum.to_string().parse(), Ok(sum));
        assert_eq!(sum.to_string().to_uppercase().parse(), Ok(sum));
        for bad in ["", "12", &"g".repeat(40), &"0".repeat(39), &"é".repeat(20), &"+0".repeat(20)] {
            assert!(bad.parse::<Checksum>().is_err_and(|error| error.contains("git hash-object")), "{bad}");
        }
    }
}
