//! Runs: which targets are looked at under which budget, in what order and on how many threads.

mod asked;
mod beside;
mod certifier;
mod collective;
mod deletions;
mod error;
mod gap;
mod needless;
mod radius;
mod recheck;
mod schedule;
mod since;
mod worker;

pub use certifier::{Certifier, Event};
pub use collective::Stage;
pub use error::CertifyError;
pub use gap::Gap;
pub use radius::{RadiusSearch, SearchEvent};
pub use recheck::Recheck;
pub use schedule::Finish;
pub use since::{Before, Everything, Touched};
