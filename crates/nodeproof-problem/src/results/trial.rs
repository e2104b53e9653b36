//! The journal of a search for radii: one line for each verdict that was needed.

use serde::{Deserialize, Serialize};

use super::certificates::{WitnessFields, duration};
use super::proofs::ProofFields;
use super::{Header, Record};
use crate::certificate::{Verdict, Witness};
use crate::ids::{ClassId, NodeId};
use crate::proof::Proofs;

/// What was found out about one node under one global budget on the way to its radius.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The node.
    pub node: NodeId,
    /// The global budget that was tried.
    pub budget: u32,
    /// The class that is certified.
    pub class: ClassId,
    /// The verdict.
    pub verdict: Verdict,
    /// Nonrobust only: the flips that change the class.
    pub witness: Option<Witness>,
    /// Robust only, where they were asked for and found: what a checker needs.
    pub proofs: Option<Proofs>,
    /// Subproblems that branch and bound looked at.
    pub branches: u64,
    /// Time spent, where it was asked for.
    pub time: Option<std::time::Duration>,
}

impl Trial {
    /// What `certificate` says under the global budget `budget`.
    pub fn new(certificate: &crate::certificate::Certificate, budget: u32) -> Self {
        Self {
            node: certificate.node,
            budget,
            class: certificate.class,
            verdict: certificate.verdict(),
            witness: certificate.witness().cloned(),
            proofs: certificate.proofs.clone(),
            branches: certificate.branches,
            time: certificate.time,
        }
    }
}

/// A trial as it is on file, in the order of its fields.
#[derive(Debug, Serialize, Deserialize)]
pub struct TrialLine {
    node: NodeId,
    budget: u32,
    class: ClassId,
    verdict: Verdict,
    #[serde(flatten)]
    proofs: ProofFields,
    #[serde(flatten)]
    witness: WitnessFields,
    branches: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

impl Record for Trial {
    const FORMAT: &'static str = "nodeproof-radius-search";
    const COLUMNS: &'static [&'static str] = &["budget", "class", "verdict", "branches"];
    type Line = TrialLine;

    fn node(&self) -> NodeId {
        self.node
    }

    fn line(&self, header: &Header) -> TrialLine {
        TrialLine {
            node: self.node,
            budget: self.budget,
            class: self.class,
            verdict: self.verdict,
            proofs: ProofFields::new(self.proofs.as_ref(), self.verdict == Verdict::Robust, header),
            witness: WitnessFields::new(self.witness.as_ref()),
            branches: self.branches,
            seconds: self.time.filter(|_| header.timings).map(|time| time.as_secs_f64()),
        }
    }

    fn of_line(line: TrialLine, header: &Header) -> Result<Self, String> {
        let TrialLine { node, budget, class, verdict, proofs, witness, branches, seconds } = line;
        header.check_node(node)?;
        header.check_class(class)?;
        let witness = witness.witness()?;
        witness.iter().try_for_each(|witness| header.check_witness(witness, Some(class)))?;
        if (verdict == Verdict::Nonrobust) != witness.is_some() {
            return Err("a witness belongs to the verdict nonrobust, and to no other".to_owned());
        }
        let proofs = proofs.proofs(verdict == Verdict::Robust, Some(class), header)?;
        let time = seconds.map(duration).transpose()?;
        Ok(Self { node, budget, class, verdict, witness, proofs, branches, time })
    }

    fn cells(&self) -> Vec<String> {
        let (budget, class, branches) = (self.budget.to_string(), self.class.to_string(), self.branches.to_string());
        vec![budget, class, self.verdict.name().to_owned(), branches]
    }
}
