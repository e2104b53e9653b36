//! Graphs and models on file, and the bundled graph. One program, so that it links once.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../../../nodeproof/tests/integration/common/seed.rs"]
mod seed;

mod files;
mod wordnet;
