//! Proofs on file.

use serde::{Deserialize, Serialize};

use super::Header;
use crate::ids::ClassId;
use crate::proof::{Branch, Proof, Proofs, UnitSlope};

/// The proofs of a record: left out if no class needs one, `null` if there are none.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ProofFields {
    #[serde(default = "no_proofs", skip_serializing_if = "are_no_proofs")]
    proofs: Option<Vec<ProofLine>>,
}

/// The proof of one class.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofLine {
    class: ClassId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    branches: Vec<Branch>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slopes: Vec<UnitSlope>,
}

/// Left out.
impl Default for ProofFields {
    fn default() -> Self {
        Self { proofs: no_proofs() }
    }
}

fn no_proofs() -> Option<Vec<ProofLine>> {
    Some(Vec::new())
}

fn are_no_proofs(proofs: &Option<Vec<ProofLine>>) -> bool {
    proofs.as_ref().is_some_and(Vec::is_empty)
}

impl ProofFields {
    /// Proofs as they are on file, where the file has any and something is claimed.
    pub(super) fn new(proofs: Option<&Proofs>, is_robust: bool, header: &Header) -> Self {
        if !(header.proofs && is_robust) {
            return Self::default();
        }
        let line = |(&class, proof): (&ClassId, &Proof)| {
            let Proof { branches, slopes } = proof.clone();
            ProofLine { class, branches, slopes }
        };
        Self { proofs: proofs.map(|proofs| proofs.iter().map(line).collect()) }
    }

    /// The proofs, one a class at most, and none of the class that is certified.
    pub(super) fn proofs(
        self,
        is_robust: bool,
        certified: Option<ClassId>,
        header: &Header,
    ) -> Result<Option<Proofs>, String> {
        match self.proofs {
            Some(lines) if is_robust && header.proofs => {
                let mut proofs = Proofs::new();
                for ProofLine { class, branches, slopes } in lines {
                    let proof = Proof { branches, slopes };
                    header.check_class(class)?;
                    header.check_proof(&proof)?;
                    if Some(class) == certified || proofs.insert(class, proof).is_some() {
                        return Err("each class but the one that is certified has one proof at most".to_owned());
                    }
                }
                Ok(Some(proofs))
            }
            Some(lines) if lines.is_empty() => Ok(None),
            None if is_robust && header.proofs => Ok(None),
            _ => Err("proofs belong to what is robust, in a file with proofs".to_owned()),
        }
    }
}
