//! What an attacker does, counted and in words.

use nodeproof_problem::Budget;
use serde::Serialize;

use crate::text::counted;

/// What a budget lets an attacker do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Attack {
    /// Flip attributes.
    #[default]
    Flips,
    /// Delete edges.
    Deletions,
    /// Both at once.
    Both,
}

impl Attack {
    /// That of a budget.
    pub fn of(budget: &Budget) -> Self {
        match budget.edges() {
            None => Self::Flips,
            Some(_) if budget.global() == 0 => Self::Deletions,
            Some(_) => Self::Both,
        }
    }

    /// `flip`, `deletion` or `change`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Flips => "flip",
            Self::Deletions => "deletion",
            Self::Both => "change",
        }
    }

    /// What is counted where budgets grow: `Global budget Q`, as in the paper, or `Deletions Q`.
    pub(crate) fn counted_by(self) -> &'static str {
        match self {
            Self::Flips => "Global budget Q",
            Self::Deletions => "Deletions Q",
            Self::Both => "Deletions Q beside flips",
        }
    }

    /// `flips`, `deletions` or `flips and deletions`.
    pub fn in_plural(self) -> &'static str {
        match self {
            Self::Flips => "flips",
            Self::Deletions => "deletions",
            Self::Both => "flips and deletions",
        }
    }
}

/// So many flips and deletions of edges in words: `2 flips`, `1 deletion`, `2 flips and 1 deletion`.
pub(crate) fn changes(flips: usize, deletions: usize) -> String {
    match (flips, deletions) {
        (0, 1..) => counted(deletions, "deletion"),
        (_, 0) => counted(flips, "flip"),
        _ => format!("{} and {}", counted(flips, "flip"), counted(deletions, "deletion")),
    }
}

#[cfg(test)]
mod tests {
    use nodeproof_problem::{EdgeBudget, LocalBudget};

    use super::*;

    #[test]
    fn a_budget_says_what_is_done() {
        let budget = |global| Budget::new(global, LocalBudget::Count(1));
        let edges = |global| budget(global).delete_edges(EdgeBudget::new(1));
        let found = [budget(0), edges(0), edges(2)].map(|budget| Attack::of(&budget));
        assert_eq!(found, [Attack::Flips, Attack::Deletions, Attack::Both]);
        assert_eq!(found.map(Attack::noun), ["flip", "deletion", "change"]);
    }

    #[test]
    fn changes_are_counted_by_what_they_are() {
        let words = [(0, 0), (1, 0), (0, 1), (0, 2), (2, 1)].map(|(flips, deletions)| changes(flips, deletions));
        assert_eq!(words, ["0 flips", "1 flip", "1 deletion", "2 deletions", "2 flips and 1 deletion"]);
    }
}
