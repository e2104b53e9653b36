//! Certificates read from their bytes as they are usually written.

use super::certificates::{CertificateLine, WitnessFields};
use super::lines::PlainRecord;
use super::proofs::ProofFields;
use crate::certificate::{Bound, Obstacle, Verdict};
use crate::flip::Flip;
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::settings::Engine;

/// The fields of a record, if it has no proofs and is written as nodeproof writes it. Whatever else it may be is `None` here, and left to
/// `serde_json`, which reads the same, and takes several times as long.
pub(super) fn scanned(record: PlainRecord) -> Option<CertificateLine> {
    Scan(record.0).line()
}

/// What is left of a record.
struct Scan<'r>(&'r [u8]);

impl Scan<'_> {
    fn line(mut self) -> Option<CertificateLine> {
        self.word(b"{\"node\":")?;
        let node = NodeId(self.whole()?);
        let label = self.if_there(b",\"label\":", |rest| rest.whole().map(ClassId))?;
        let (predicted, class) = (self.class(b",\"predicted\":")?, self.class(b",\"class\":")?);
        self.word(b",\"verdict\":\"")?;
        let verdict = self.one_of(&[
            (b"nonrobust\"", Verdict::Nonrobust),
            (b"robust\"", Verdict::Robust),
            (b"undecided\"", Verdict::Undecided),
        ])?;
        let margins = self.margins()?;
        let worst_class = self.class(b",\"worst_class\":")?;
        // To serde, an optional field without a value is none.
        let lower =
            self.if_there(b",\"lower\":", |rest| rest.word(b"null").map(|()| None).or_else(|| rest.bound().map(Some)))?;
        let lower = lower.flatten();
        let upper = self.if_there(b",\"upper\":", Self::number)?;
        let because = self.if_there(b",\"because\":\"", |rest| {
            rest.one_of(&[
                (b"engine\"", Obstacle::Engine),
                (b"values\"", Obstacle::Values),
                (b"time\"", Obstacle::Time),
                (b"memory\"", Obstacle::Memory),
                (b"overflow\"", Obstacle::Overflow),
                (b"arithmetic\"", Obstacle::Arithmetic),
            ])
        })?;
        let witness = self.if_there(b",\"witness\":[", Self::witness)?.unwrap_or_default();
        self.word(b",\"engine\":\"")?;
        let engine =
            self.one_of(&[(b"fast\"", Engine::Fast), (b"tight\"", Engine::Tight), (b"complete\"", Engine::Complete)])?;
        let branches = self.if_there(b",\"branches\":", Self::whole)?.unwrap_or(0).into();
        let seconds = self.if_there(b",\"seconds\":", Self::number)?;
        let proofs = ProofFields::default();
        let line = CertificateLine {
            node,
            label,
            predicted,
            class,
            verdict,
            margins,
            worst_class,
            proofs,
            lower,
            upper,
            because,
            witness,
            engine,
            branches,
            seconds,
        };
        self.0.is_empty().then_some(line)
    }

    fn margins(&mut self) -> Option<Vec<Bound>> {
        self.word(b",\"margins\":[")?;
        let mut margins = Vec::with_capacity(8);
        loop {
            margins.push(self.bound()?);
            if !self.one_of(&[(b",", true), (b"]", false)])? {
                return Some(margins);
            }
        }
    }

    /// A witness after the beginning of its flips.
    fn witness(&mut self) -> Option<WitnessFields> {
        let flips = self.flips()?;
        let class = self.class(b",\"witness_class\":")?;
        self.word(b",\"witness_margin\":")?;
        Some(WitnessFields::of_parts(flips, class, self.number()?))
    }

    fn flips(&mut self) -> Option<Vec<Flip>> {
        let mut flips = Vec::new();
        if self.word(b"]").is_some() {
            return Some(flips);
        }
        loop {
            self.word(b"{\"node\":")?;
            let node = NodeId(self.whole()?);
            self.word(b",\"attribute\":")?;
            let attribute = AttributeId(self.whole()?);
            self.word(b",\"to\":")?;
            let to = self.one_of(&[(b"0}", 0.0), (b"1}", 1.0)]).or_else(|| {
                let to = self.number()?;
                self.word(b"}").map(|()| to)
            })?;
            flips.push(Flip { node, attribute, to });
            if !self.one_of(&[(b",", true), (b"]", false)])? {
                return Some(flips);
            }
        }
    }

    /// A field of this name, if there is one; `None` if it has something else.
    fn if_there<T>(&mut self, name: &[u8], read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.word(name) {
            Some(()) => read(self).map(Some),
            None => Some(None),
        }
    }

    fn class(&mut self, name: &[u8]) -> Option<ClassId> {
        self.word(name)?;
        self.whole().map(ClassId)
    }

    fn bound(&mut self) -> Option<Bound> {
        let words: [(&[u8], Bound); 2] = [(b"null", Bound::Unknown), (b"\"positive\"", Bound::Positive)];
        self.one_of(&words).or_else(|| self.number().map(Bound::of_number))
    }

    /// Goes on after these bytes, if they come next.
    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(word)?;
        Some(())
    }

    fn one_of<T: Copy>(&mut self, words: &[(&[u8], T)]) -> Option<T> {
        words.iter().find_map(|&(word, meant)| self.word(word).map(|()| meant))
    }

    /// A number without sign, point or exponent.
    fn whole(&mut self) -> Option<u32> {
        let digits = self.digits();
        // One that is longer may be too large, and one that begins with 0 is 0, or no number.
        if !(1..=9).contains(&digits.len()) || (digits[0] == b'0' && digits.len() > 1) {
            return None;
        }
        Some(digits.iter().fold(0, |number, digit| 10 * number + u32::from(digit - b'0')))
    }

    /// A finite number with a point, or an exponent, or both.
    fn number(&mut self) -> Option<f64> {
        let start = self.0;
        let _ = self.word(b"-");
        let digits = self.digits();
        if digits.is_empty() || (digits[0] == b'0' && digits.len() > 1) {
            return None;
        }
        let has_point = self.word(b".").is_some();
        if has_point && self.digits().is_empty() {
            return None;
        }
        let has_exponent = self.word(b"e").is_some();
        if has_exponent {
            let _ = self.one_of(&[(b"-", ()), (b"+", ())]);
            if self.digits().is_empty() {
                return None;
            }
        }
        let text = str::from_utf8(&start[..start.len() - self.0.len()]).ok()?;
        let number: f64 = text.parse().ok()?;
        ((has_point || has_exponent) && number.is_finite()).then_some(number)
    }

    fn digits(&mut self) -> &[u8] {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        digits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::certificate::{Certificate, Evidence, Witness};
    use crate::results::Record;
    use crate::results::tests::header;

    fn numbers() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => -2.0f64..2.0,
            1 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
            1 => prop::sample::select(vec![0.0, -0.0, 1.0, -3.0, 1e300, 5e-324, f64::MIN, f64::MAX, 1e-7, 1e22]),
        ]
    }

    fn bounds() -> impl Strategy<Value = Bound> {
        prop_oneof![1 => Just(Bound::Unknown), 1 => Just(Bound::Positive), 6 => numbers().prop_map(Bound::AtLeast)]
    }

    fn evidence() -> impl Strategy<Value = Evidence> {
        let flip = (0..=999_999_999u32, 0u32..2000, prop_oneof![Just(0.0), Just(1.0), numbers()]);
        let flip = flip.prop_map(|(node, d, to)| Flip { node: NodeId(node), attribute: AttributeId(d), to });
        let witness = (prop::collection::vec(flip, 0..4), 0u32..4, numbers());
        let obstacle = prop::sample::select(vec![
            None,
            Some(Obstacle::Engine),
            Some(Obstacle::Values),
            Some(Obstacle::Time),
            Some(Obstacle::Memory),
            Some(Obstacle::Overflow),
            Some(Obstacle::Arithmetic),
        ]);
        prop_oneof![
            Just(Evidence::Robust),
            witness.prop_map(|(flips, class, margin)| Evidence::Witness(Witness::new(flips, ClassId(class), margin))),
            (bounds(), prop::option::of(numbers()), obstacle).prop_map(|(lower, upper, because)| Evidence::Open {
                lower,
                upper,
                because
            }),
        ]
    }

    fn certificates() -> impl Strategy<Value = Certificate> {
        let ids = (0..=999_999_999u32, prop::option::of(0u32..4), 0u32..4, 0u32..4);
        let engine = prop::sample::select(vec![Engine::Fast, Engine::Tight, Engine::Complete]);
        let margins = prop::collection::vec(bounds(), 1..5);
        let rest = (engine, prop_oneof![Just(0u64), 0..=999_999_999u64], prop::option::of(0.0f64..1e6));
        (ids, evidence(), margins, rest).prop_map(|((node, label, predicted, class), evidence, margins, rest)| {
            let other = |(k, margin): (u32, Bound)| (k != class).then_some(margin);
            let margins = (0..).zip(margins).map(other).collect();
            let mut made = Certificate::new(NodeId(node), ClassId(class), ClassId(predicted), evidence, margins);
            made.label = label.map(ClassId);
            (made.engine, made.branches) = (rest.0, rest.1);
            made.time = rest.2.map(std::time::Duration::from_secs_f64);
            made
        })
    }

    fn written(certificate: &Certificate, timings: bool) -> Vec<u8> {
        let mut record = serde_json::to_vec(&certificate.line(&header().timings(timings))).unwrap();
        assert_eq!(record.pop(), Some(b'}'));
        record
    }

    proptest! {
        #![proptest_config(crate::seed::config(2000))]

        #[test]
        fn records_are_read_as_by_serde(certificate in certificates(), timings: bool) {
            let record = written(&certificate, timings);
            let expected: CertificateLine = PlainRecord(&record).parse().unwrap();
            prop_assert_eq!(scanned(PlainRecord(&record)), Some(expected));
        }

        /// Whatever is made of a record, what is scanned is what serde reads.
        #[test]
        fn nothing_is_scanned_that_serde_does_not_read(
            certificate in certificates(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, prop::sample::select(b"0123456789.,-+eE\"{}[]: nulax".to_vec())), 1..4),
        ) {
            let mut record = written(&certificate, false);
            for (place, sort, byte) in edits {
                let place = place.index(record.len());
                match sort {
                    0 => record[place] = byte,
                    1 => record.insert(place, byte),
                    _ => drop(record.remove(place)),
                }
            }
            if let Some(found) = scanned(PlainRecord(&record)) {
                let expected: CertificateLine = PlainRecord(&record).parse().unwrap();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn usual_records_are_scanned() {
        for record in [
            r#"{"node":7,"label":1,"predicted":1,"class":1,"verdict":"robust","margins":[0.85,null,"positive",1e-7],"worst_class":2,"engine":"fast"}"#,
            r#"{"node":0,"predicted":0,"class":0,"verdict":"undecided","margins":[null,-0.0],"worst_class":1,"lower":-0.0,"upper":1.5,"because":"engine","engine":"tight","branches":12,"seconds":0.5}"#,
            r#"{"node":1,"predicted":2,"class":2,"verdict":"nonrobust","margins":[-1.7,-1.9,null],"worst_class":1,"witness":[{"node":1,"attribute":2,"to":0},{"node":3,"attribute":4,"to":0.5}],"witness_class":1,"witness_margin":-3.3,"engine":"complete"}"#,
        ] {
            let found = scanned(PlainRecord(record.strip_suffix('}').unwrap().as_bytes()));
            assert_eq!(found, Some(serde_json::from_str(record).unwrap()), "{record}");
        }
    }
}
