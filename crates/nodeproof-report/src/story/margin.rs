//! The margins over other classes, as they are and under attack.

use nodeproof_problem::{Bound, ClassId, Witness};
use serde::Serialize;

use super::{Named, bound, number};
use crate::text;

/// The margin over one other class.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Margin {
    /// The class.
    pub class: Named<ClassId>,
    /// The margin on the graph as it is.
    pub clean: f64,
    /// The margin over all admissible sets is at least this.
    pub lower: Bound,
    /// What follows.
    pub status: Status,
}

/// What is known of a margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// The lower bound is positive.
    Holds,
    /// The lower bound is not positive, but no witness is known for this class.
    MayFall,
    /// The class wins under the witness, or as it is.
    Falls,
    /// The class is level under the witness: a tie.
    Ties,
    /// The margin is smaller under the witness than was asked for.
    Close,
}

impl Status {
    /// `holds`, `may fall`, `falls`, `ties` or `comes close`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::MayFall => "may fall",
            Self::Falls => "falls",
            Self::Ties => "ties",
            Self::Close => "comes close",
        }
    }
}

impl Margin {
    pub(super) fn new(class: Named<ClassId>, clean: f64, lower: Bound, witness: Option<&Witness>) -> Self {
        let status = match witness.filter(|witness| witness.class == class.id) {
            Some(witness) => Self::under(witness),
            None if clean < 0.0 => Status::Falls,
            None if lower.is_positive() => Status::Holds,
            None => Status::MayFall,
        };
        Self { class, clean, lower, status }
    }

    /// Takes note of one more witness for this class.
    pub(super) fn overtaken(&mut self, witness: &Witness) {
        if self.status != Status::Falls {
            self.status = Self::under(witness);
        }
    }

    fn under(witness: &Witness) -> Status {
        match witness.margin {
            0.0 => Status::Ties,
            margin if margin > 0.0 => Status::Close,
            _ => Status::Falls,
        }
    }

    fn row(&self) -> Vec<String> {
        let lower = match self.lower {
            Bound::Unknown => "unknown".to_owned(),
            Bound::Positive => "> 0".to_owned(),
            Bound::AtLeast(lower) => format!("≥ {}", bound(lower)),
        };
        vec![self.class.in_words(), number(self.clean), lower, self.status.name().to_owned()]
    }
}

pub(super) fn table(margins: &[Margin]) -> String {
    let header = ["margin over", "as it is", "under attack", "status"].map(str::to_owned).to_vec();
    text::table("lrrl", Some(header), margins.iter().map(Margin::row).collect())
}
