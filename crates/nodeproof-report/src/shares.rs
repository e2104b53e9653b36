//! How many nodes are proven robust, and nonrobust, under each global budget.

use std::collections::BTreeMap;

use nodeproof_problem::Evidence;
use nodeproof_problem::results::{Certificates, Radii};

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

    /// The counts that follow from certificates of one model under one or several global budgets, all else being equal: a node that is
    /// robust under one is robust under smaller ones, and nonrobust from the size of its witness on.
    pub fn of_certificates(under: &[&Certificates]) -> Self {
        let mut known: BTreeMap<_, (Option<u32>, Option<u32>)> = BTreeMap::new();
        let budget = |results: &Certificates| results.header.budget.varied();
        for results in under {
            for record in &results.records {
                let (robust, nonrobust) = known.entry(record.node).or_default();
                match &record.evidence {
                    Evidence::Robust => *robust = (*robust).max(Some(budget(results))),
                    Evidence::Witness(witness) => {
                        let from = budget(results).min(witness.size() as u32);
                        *nonrobust = Some(nonrobust.map_or(from, |known| known.min(from)));
                    }
                    _ => {}
                }
            }
        }
        let most = under.iter().map(|results| budget(results)).max().unwrap_or(0);
        Self::count(known.into_values(), most)
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
    use nodeproof_problem::results::Header;
    use nodeproof_problem::{
        AttributeId, Bound, Budget, Certificate, CertifySettings, ClassId, Flip, Graph, Matrix, Model, NodeId,
        Propagation, Witness,
    };

    use super::*;

    #[test]
    fn certificates_say_something_about_other_budgets() {
        let graph = Graph::new(5, 2, &[], &[]).unwrap();
        let model = Model::gcn(vec![(Matrix::zeros(2, 2), vec![0.0; 2])], Propagation::SymmetricGcn).unwrap();
        let witness = |node: u32, flips: u32| {
            let flips = (0..flips).map(|attribute| Flip::of(&graph, NodeId(node), AttributeId(attribute)));
            Evidence::Witness(Witness::new(flips.collect(), ClassId(1), -0.5))
        };
        let open = || Evidence::Open { lower: Bound::Unknown, upper: None, because: None };
        let under = |global: u32, evidence: [Evidence; 5]| {
            let settings = CertifySettings::new(Budget::new(global, 2.into()));
            let mut results = Certificates::new(Header::new(&graph, &model, &settings, 5));
            results.records = (0..5)
                .map(NodeId)
                .zip(evidence)
                .map(|(node, evidence)| Certificate::new(node, ClassId(0), ClassId(0), evidence, vec![None; 2]))
                .collect();
            results
        };
        let robust = Evidence::Robust;
        let one = under(1, [robust.clone(), robust.clone(), open(), witness(3, 1), robust.clone()]);
        let three = under(3, [robust, witness(1, 2), open(), witness(3, 2), open()]);
        let shares = Shares::of_certificates(&[&three, &one]);
        assert_eq!((shares.nodes, shares.robust, shares.nonrobust), (5, vec![3, 3, 1, 1], vec![0, 1, 2, 2]));
        assert_eq!(Shares::of_certificates(&[&three]).nonrobust, [0, 0, 2, 2], "two flips are few enough for two");
        assert_eq!(Shares::of_certificates(&[]).robust_shares(), [0.0; 0]);
    }

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
