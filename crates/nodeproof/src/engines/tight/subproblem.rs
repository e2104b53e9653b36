//! A subset of all admissible sets of flips (Definition 10 of `docs/maths.md`).

use std::rc::Rc;

use super::ascent::Parameters;
use super::flips::Flips;

/// A subset of all admissible sets: some flips are in every set and some in none; and of some concave units, whose term
/// `−|c| relu(x)` is the smaller of 0 and `−|c| x`, one of the two is taken instead.
#[derive(Debug, Clone)]
pub(crate) struct Subproblem {
    /// The flips that are listed.
    pub(crate) flips: Rc<Flips>,
    /// For each node of level 0 the most that a flip of it gains that is not listed, or nothing if all that matter are.
    pub(crate) unlisted: Option<Rc<Vec<f64>>>,
    /// Flips that every set has, as indices into [`Flips`].
    pub(crate) fixed: Vec<u32>,
    /// Flips that a set may have.
    pub(crate) free: Vec<u32>,
    /// Concave units that count as linear (`true`) or as 0 (`false`).
    pub(crate) phases: Vec<(u32, bool)>,
    /// Parameters from which to climb on.
    pub(crate) parameters: Rc<Vec<Parameters>>,
    /// A lower bound on the margin over it, up to rounding.
    pub(crate) bound: f64,
}

impl Subproblem {
    /// All sets of `flips`.
    pub(crate) fn all(flips: Rc<Flips>, parameters: Vec<Parameters>, bound: f64) -> Self {
        Self {
            free: (0..flips.len() as u32).collect(),
            flips,
            unlisted: None,
            fixed: Vec::new(),
            phases: Vec::new(),
            parameters: Rc::new(parameters),
            bound,
        }
    }

    /// Bytes that it takes, about; flips are shared.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.free[..])
            + size_of_val(&self.fixed[..])
            + size_of_val(&self.phases[..])
            + size_of_val(&self.parameters[..])
            + self.flips.bytes() / Rc::strong_count(&self.flips)
    }

    /// Forgets flips that are neither fixed nor free.
    pub(crate) fn compact(&mut self, most: usize) {
        let mut kept: Vec<u32> = self.fixed.iter().chain(&self.free).copied().collect();
        kept.sort_unstable();
        let place = |flip: &u32| kept.binary_search(flip).unwrap_or(0) as u32;
        let fixed = self.fixed.iter().map(place).collect();
        let free = self.free.iter().map(place).collect();
        (self.fixed, self.free) = (fixed, free);
        self.flips = Rc::new(self.flips.restricted(&kept, most));
    }
}
