//! How many nodes are proven robust, and nonrobust, under each global budget.

use nodeproof_problem::results::Radii;

/// Counts of nodes by global budget Q.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shares {
    /// Nodes in total.
    pub nodes: usize,
    /// For Q = 0, 1, …, the largest budget that was tried, or a million: nodes proven robust; never rises.
    pub robust: Vec<usize>,
    /// The same for nodes with a known witness; never falls.
    pub nonrobust: Vec<usize>,
}

/// Budgets beyond this one are left out, whatever a file claims to have tried.
const MOST_BUDGETS: u32 = 1_000_000;

impl Shares {
    /// The counts of `radii`: a node is robust up to its `robust_up_to`, and nonrobust from its `nonrobust_from` on.
    pub fn of(radii: &Radii) -> Self {
        let records = radii.records.iter().map(|record| (radii.proven(record), record.nonrobust_from()));
        Self::count(records, radii.max_budget())
    }

    /// Counts nodes, given up to where each is robust and from where nonrobust.
    fn count(records: impl Iterator<Item = (Option<u32>, Option<u32>)>, most: u32) -> Self {
        let most = most.min(MOST_BUDGETS);
        let length = most as usize + 1;
        let (mut last_robust, mut first_nonrobust) = (vec![0; length], vec![0; length]);
        let mut nodes = 0;
        for (robust, nonrobust) in records {
            nodes += 1;
            if let Some(robust) = robust {
                last_robust[robust.min(most) as usize] += 1;
            }
            if let Some(nonrobust) = nonrobust.filter(|&from| from <= most) {
                first_nonrobust[nonrobust as usize] += 1;
            }
        }
        let mut robust = last_robust;
        for q in (1..length).rev() {
            robust[q - 1] += robust[q];
        }
        let mut nonrobust = first_nonrobust;
        for q in 1..length {
            nonrobust[q] += nonrobust[q - 1];
        }
        Self { nodes, robust, nonrobust }
    }

    /// Shares proven robust, by Q; empty without nodes.
    pub fn robust_shares(&self) -> Vec<f64> {
        self.shares(&self.robust)
    }

    /// Shares with a known witness, by Q; empty without nodes.
    pub fn nonrobust_shares(&self) -> Vec<f64> {
        self.shares(&self.nonrobust)
    }

    fn shares(&self, counts: &[usize]) -> Vec<f64> {
        if self.nodes == 0 {
            Vec::new()
        } else {
            counts.iter().map(|&count| count as f64 / self.nodes as f64).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_counted_under_every_budget() {
        let records = [(None, Some(0)), (Some(0), Some(2)), (Some(1), None), (Some(3), None)];
        let shares = Shares::count(records.into_iter(), 3);
        assert_eq!(shares.nodes, 4);
        assert_eq!(shares.robust, [3, 2, 1, 1]);
        assert_eq!(shares.nonrobust, [1, 1, 2, 2]);
        assert_eq!(shares.robust_shares()[1], 0.5);
        assert_eq!(Shares::count(std::iter::empty(), 1).robust_shares(), [0.0; 0]);
    }
}
