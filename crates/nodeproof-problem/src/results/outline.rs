//! What counts are made from, read from the bytes of a certificate.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Header;
use super::certificates::CertificateLine;
use super::lines::PlainRecord;
use super::scan::scanned;
use crate::certificate::{Bound, Obstacle, Outline, Verdict, smallest};
use crate::ids::{ClassId, NodeId};
use crate::settings::Engine;

/// Of the fields of a certificate those that an [`Outline`] is made of, and those that show whether it may be carried over.
#[derive(Debug, Deserialize)]
pub(super) struct OutlineLine {
    node: NodeId,
    label: Option<ClassId>,
    predicted: ClassId,
    class: ClassId,
    verdict: Verdict,
    margins: Vec<Bound>,
    /// Whether there are to be proofs, and are none.
    #[serde(default, deserialize_with = "is_null")]
    proofs: bool,
    because: Option<Obstacle>,
    #[serde(default, deserialize_with = "is_there")]
    witness: bool,
    engine: Engine,
}

/// Whether a field that is there has no value.
fn is_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    is_there(deserializer).map(|there| !there)
}

fn is_there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(deserializer).map(|value| value.is_some())
}

impl OutlineLine {
    /// Reads a record.
    pub(super) fn read(record: PlainRecord) -> Result<Self, String> {
        match scanned(record) {
            Some(line) => Ok(Self::of(&line)),
            None => record.parse().map_err(|error| error.to_string()),
        }
    }

    /// The same of all fields, of a certificate without proofs.
    fn of(line: &CertificateLine) -> Self {
        let &CertificateLine { node, label, predicted, class, verdict, because, engine, .. } = line;
        let (margins, witness) = (line.margins.clone(), line.witness.is_there());
        Self { node, label, predicted, class, verdict, margins, proofs: false, because, witness, engine }
    }

    /// What it says, if there can be such a certificate, and whether a limit of time or memory may have kept it from saying more.
    pub(super) fn outline(self, header: &Header) -> Result<(Outline, bool), String> {
        let Self { node, label, predicted, class, verdict, because, engine, .. } = self;
        header.check_node(node)?;
        [predicted, class].into_iter().chain(label).try_for_each(|class| header.check_class(class))?;
        if self.margins.len() != header.model.classes {
            return Err(format!("{} margins for {} classes", self.margins.len(), header.model.classes));
        }
        let other = |(k, margin): (u32, Bound)| (ClassId(k) != class).then_some(margin);
        let margins: Vec<Option<Bound>> = (0..).zip(self.margins).map(other).collect();
        let margin = smallest(&margins).1;
        if verdict == Verdict::Robust && !margin.exceeds(header.margin) {
            return Err(format!("it is called robust, but its margins do not exceed {}", header.margin));
        }
        if self.witness != (verdict == Verdict::Nonrobust) {
            return Err("a witness belongs to the verdict nonrobust, and to no other".to_owned());
        }
        let unclear = matches!(because, None | Some(Obstacle::Time | Obstacle::Memory));
        let cut_short = self.proofs || (verdict == Verdict::Undecided && unclear);
        let because = because.filter(|_| verdict == Verdict::Undecided);
        let proven = verdict == Verdict::Robust && header.proofs && !self.proofs;
        Ok((Outline { node, label, predicted, verdict, margin, engine, because, proven }, cut_short))
    }
}
