//! Certificates, radii and training logs as they are on file: JSON Lines, a header and one line a node or step.
//!
//! `docs/formats.md` describes every field.

mod certificate;
mod header;
mod radius;
mod read;
mod training;
mod write;

pub use certificate::{FlipRecord, Record, VerdictName};
pub use header::{GraphHeader, ModelHeader, ResultBudget};
pub use radius::{Found, RadiusRecord};
pub use read::{Certificates, Radii, Results, ResultsError, TrainingLog};
pub use training::StepRecord;
pub use write::{CertificatesHeader, RadiiHeader};
