//! Reads the arrays of an `.npz` file, enough of the format for the golden values.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder that environment variable `name` points to; says so and gives `None` where it is not set.
pub fn folder(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(name).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {name} is not set");
    }
    folder
}

/// All values of `member` as `f64`, row by row: little-endian floats or integers, or booleans, in C order.
pub fn read(path: &Path, member: &str) -> Vec<f64> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let mut bytes = Vec::new();
    archive.by_name(&format!("{member}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(&bytes[..7], b"\x93NUMPY\x01", "{member} is not an array of format 1");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..start]).unwrap();
    assert!(header.contains("'fortran_order': False"), "{member}: {header}");
    let values = &bytes[start..];
    let descriptor = header.split('\'').nth(3).unwrap();
    match descriptor {
        "|b1" => values.iter().map(|&byte| f64::from(byte)).collect(),
        "<f4" => values.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect(),
        "<f8" => values.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
        "<i4" => values.chunks_exact(4).map(|b| f64::from(i32::from_le_bytes(b.try_into().unwrap()))).collect(),
        "<i8" => values.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f64).collect(),
        other => panic!("{member} holds {other}"),
    }
}
