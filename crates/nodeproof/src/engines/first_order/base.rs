//! A base point: the attributes with some flips made, around which the network is linearised.

use super::lines::{Line, Lines};
use super::rows::Rows;
use super::target::Target;
use crate::dense::{Matrix, relu};
use crate::engines::attack::{Attack, errors_of};
use crate::ids::ClassId;
use crate::model::Activation;
use crate::slice::{SlicedFlip, reversed};

/// How a unit is at a base point, and what its ReLU is bounded by (Lemma 36): if z ≤ 0 and no set lifts it above hi,
///
/// ```text
/// relu(Z) ≤ Σ_f share · relu(U_f − threshold),   r · threshold ≤ |z| − (1 / share − 1) hi,   0 ≤ threshold,
/// ```
///
/// and likewise with −Z if z > 0. A share of 1 needs no hi.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unit {
    pub(super) threshold: f64,
    pub(super) share: f64,
    /// Whether z > 0.
    pub(super) on: bool,
    /// Whether that is sure, whatever rounding did to z.
    pub(super) is_sure: bool,
    /// What it stays between in all sets.
    pub(super) ends: (f64, f64),
}

impl Unit {
    /// With a share of 1, or 0 if it cannot get beyond 0; `sure` is what is sure of |z|, and negative if nothing is.
    pub(super) fn new(z: f64, sure: f64, ends: (f64, f64), left: usize) -> Self {
        let mut unit = Self { threshold: 0.0, share: 1.0, on: z > 0.0, is_sure: sure > f64::MIN_POSITIVE, ends };
        // Signs are hard to predict: no branches.
        let stays = unit.is_sure & (unit.beyond() <= 0.0);
        let threshold = if unit.is_sure { sure * (1.0 - SLACK) / left.max(1) as f64 } else { 0.0 };
        unit.threshold = if stays { f64::INFINITY } else { threshold };
        unit.share = if stays { 0.0 } else { 1.0 };
        unit
    }

    /// How far it can get beyond 0 on the other side.
    fn beyond(self) -> f64 {
        if self.on { -self.ends.0 } else { self.ends.1 }
    }

    /// With another share, given what is sure of |z| and of how far it can get beyond 0 on the other side.
    pub(super) fn with_share(self, share: f64, sure: f64, beyond: f64, left: usize) -> Self {
        let used = (1.0 / share - 1.0) * beyond * (1.0 + SLACK);
        let threshold = (sure * (1.0 - SLACK) - used) * (1.0 - SLACK) / left.max(1) as f64;
        if threshold >= 0.0 { Self { threshold, share, ..self } } else { self }
    }

    /// With the ends of a line, and a share of 0 if these, or the line's sign, keep it from getting beyond 0.
    fn narrowed(mut self, line: &Line) -> Self {
        self.ends = (self.ends.0.max(line.ends.0), self.ends.1.min(line.ends.1));
        if self.is_sure && (self.beyond() <= 0.0 || line.phase == Some(self.on)) {
            (self.threshold, self.share) = (f64::INFINITY, 0.0);
        }
        self
    }

    /// The slope of the activation at z.
    #[inline]
    pub(super) fn tangent(self, activation: Activation) -> f64 {
        if self.on { 1.0 } else { activation.slope() }
    }

    /// At most this share of a move towards 0 and beyond, which is at most `reach`, is its excess.
    fn bent(self, activation: Activation, reach: f64) -> f64 {
        (1.0 - activation.slope()) * self.share * (1.0 - self.threshold / reach).max(0.0)
    }

    /// How far a flip that moves it within `[lower, upper]` moves it towards 0 and beyond.
    #[inline]
    pub(super) fn towards(self, lower: f64, upper: f64) -> f64 {
        if self.on { -lower } else { upper }
    }

    /// The excess of a flip that moves it within `[lower, upper]`, for an activation of slope 0 below 0.
    #[inline]
    pub(super) fn excess(self, lower: f64, upper: f64) -> f64 {
        self.share * relu(self.towards(lower, upper) - self.threshold)
    }
}

/// The units of a layer that can get beyond 0, node by node.
#[derive(Debug, Clone)]
pub(super) struct Open {
    offsets: Vec<u32>,
    columns: Vec<u32>,
}

impl Open {
    fn new(units: &Matrix<Unit>) -> Self {
        let (mut offsets, mut columns) = (Vec::with_capacity(units.rows() + 1), Vec::new());
        offsets.push(0);
        for row in 0..units.rows() {
            columns.extend(units.row(row).iter().zip(0..).filter(|(unit, _)| unit.share > 0.0).map(|(_, j)| j));
            offsets.push(columns.len() as u32);
        }
        Self { offsets, columns }
    }

    /// Those of a node.
    #[inline]
    pub(super) fn of(&self, row: usize) -> &[u32] {
        &self.columns[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// Far above what rounding can do to a few operations.
const SLACK: f64 = 1e-12;

/// Shares that are tried.
const SHARES: usize = 6;

/// The attributes with some flips made, and what may still be flipped.
#[derive(Clone)]
pub(super) struct Base {
    pub(super) flips: Vec<SlicedFlip>,
    /// Most flips at each node of level 0 that are left, and in total.
    pub(super) capacities: Vec<u32>,
    pub(super) left: usize,
    /// The flips of real values that are made, made the other way.
    pub(super) opposite: Vec<SlicedFlip>,
    /// Those of them that may be made as well, or in part, without counting once more.
    pub(super) freed: Vec<SlicedFlip>,
    /// Where the ones of rows are divided by their number, what that makes of them.
    pub(super) rows: Option<Rows>,
    /// Pre-activations of all layers.
    pub(super) z: Vec<Matrix>,
    /// The units of all layers but the last, and the slopes of their tangents.
    pub(super) units: Vec<Matrix<Unit>>,
    pub(super) tangents: Vec<Matrix>,
    /// At most this share of what a flip moves a unit down by remains after the activation, but for its excess: the tangent's slope, or 1
    /// if the sign of the unit is not sure.
    pub(super) falls: Vec<Matrix>,
    /// At most this share of what a flip moves a unit towards 0 and beyond is its excess.
    pub(super) bent: Vec<Matrix>,
    /// The units of each layer whose sign is not sure, numbered within it.
    pub(super) unsure: Vec<Vec<u32>>,
    /// Those that can get beyond 0, by layer.
    pub(super) open: Vec<Open>,
    y: ClassId,
    knows: Knows,
}

/// What a base point knows of its units beside what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knows {
    /// What they stay between under the budget.
    Bounds,
    /// Nothing, as a checker does. It rounds otherwise, too: units whose sign is not sure count as not above 0.
    Nothing,
}

/// Which flips of a base point may be made the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ways {
    /// All of them, and in part.
    All,
    /// Those that no list of flips has that way: of entries outside of their ranges, which both ends are on one side of.
    Unlisted,
}

impl Ways {
    /// Whether a flip of an entry that another one has brought to the opposite end is freed.
    fn frees(self, target: &Target, flip: SlicedFlip) -> bool {
        let Target { shared, slice, .. } = target;
        let moves = shared.change(slice, flip) != 0.0 && shared.change_back(slice, flip) != 0.0;
        self == Self::All || (moves && !target.goes_its_way(flip))
    }
}

impl Base {
    /// The base point without flips.
    pub(super) fn clean(target: &Target, y: ClassId, knows: Knows) -> Self {
        Self::new(target, y, Vec::new(), target.clean(), (knows, Ways::All))
    }

    /// The base point of `flips`, which were just tried.
    pub(super) fn tried(target: &Target, attack: &Attack, y: ClassId, flips: Vec<SlicedFlip>, knows: Knows) -> Self {
        Self::new(target, y, flips, attack.pre_activations().to_vec(), (knows, Ways::All))
    }

    /// The same with values at ends of their ranges alone.
    pub(super) fn tried_at_ends(target: &Target, attack: &Attack, y: ClassId, flips: Vec<SlicedFlip>) -> Self {
        Self::new(target, y, flips, attack.pre_activations().to_vec(), (Knows::Bounds, Ways::Unlisted))
    }

    /// The same base point with values at ends of their ranges alone, if it is another one then.
    pub(super) fn at_ends(&self, target: &Target) -> Option<Self> {
        let is_unlisted = |&flip: &SlicedFlip| Ways::Unlisted.frees(target, flip);
        let is_new = !self.freed.iter().all(is_unlisted);
        is_new.then(|| Self::new(target, self.y, self.flips.clone(), self.z.clone(), (self.knows, Ways::Unlisted)))
    }

    /// The same with fewer freed flips, these.
    pub(super) fn with_freed(self, freed: Vec<SlicedFlip>) -> Self {
        Self { freed, ..self }
    }

    fn new(target: &Target, y: ClassId, flips: Vec<SlicedFlip>, z: Vec<Matrix>, (knows, ways): (Knows, Ways)) -> Self {
        let mut capacities = target.capacities.clone();
        flips.iter().for_each(|&(position, _)| capacities[position as usize] -= 1);
        let left = (target.most - flips.len()).min(target.flips_left(&capacities));
        let rows = Rows::new(target, &flips);
        let has_values = target.shared.network.graph().values().is_some();
        let opposite: Vec<SlicedFlip> = flips.iter().filter(|_| has_values).map(|&flip| reversed(flip)).collect();
        let freed = opposite.iter().copied().filter(|&flip| ways.frees(target, flip)).collect();
        let mut base = Self {
            flips,
            capacities,
            left,
            opposite,
            freed,
            rows,
            z,
            units: Vec::new(),
            tangents: Vec::new(),
            falls: Vec::new(),
            bent: Vec::new(),
            unsure: Vec::new(),
            open: Vec::new(),
            y,
            knows,
        };
        (0..target.hidden()).for_each(|layer| base.add_layer(target, layer));
        base
    }

    /// Most flips that can be made at once from here.
    pub(super) fn moves_left(&self) -> usize {
        self.left + self.freed.len()
    }

    /// The flips that were made and these, of which some may go back.
    pub(super) fn with<'s>(&'s self, others: &'s [SlicedFlip]) -> impl Iterator<Item = SlicedFlip> + Clone + 's {
        let stays = |flip: &&SlicedFlip| self.freed.is_empty() || !others.contains(&reversed(**flip));
        self.flips.iter().filter(stays).chain(others).copied()
    }

    /// Adds what is known of the units of a layer.
    fn add_layer(&mut self, target: &Target, layer: usize) {
        let (z, reach) = (&self.z[layer], &target.reach[layer]);
        let (rows, columns) = (z.rows(), z.columns());
        let (region, bounds) = (&target.shared.region, &target.shared.bounds.layers[layer]);
        let activation = target.shared.network.layers()[layer].activation();
        let [mut tangents, mut falls, mut bent] = [(); 3].map(|()| Vec::with_capacity(rows * columns));
        let (mut units, mut unsure) = (Vec::with_capacity(rows * columns), Vec::new());
        let errors = errors_of(target.slice);
        for (row, &node) in target.slice.level(layer + 1).iter().enumerate() {
            let place = region.level(layer + 1).place(node);
            let ends = bounds.lo.row(place).iter().zip(bounds.hi.row(place));
            for (j, ((&z, &reach), (lo, hi))) in z.row(row).iter().zip(reach.row(row)).zip(ends).enumerate() {
                let error = bounds.error.unit(place, j);
                let ends = match self.knows {
                    Knows::Bounds => (lo - 2.0 * error, hi + 2.0 * error),
                    Knows::Nothing => (f64::NEG_INFINITY, f64::INFINITY),
                };
                let mut unit = Unit::new(z, z.abs() - errors * error, ends, self.moves_left());
                unit.on &= unit.is_sure || self.knows == Knows::Bounds;
                if !unit.is_sure {
                    unsure.push((row * columns + j) as u32);
                }
                let tangent = unit.tangent(activation);
                tangents.push(tangent);
                falls.push(if unit.is_sure { tangent } else { 1.0 });
                bent.push(unit.bent(activation, reach));
                units.push(unit);
            }
        }
        let units = Matrix::from_values(rows, columns, units);
        self.open.push(Open::new(&units));
        self.units.push(units);
        self.tangents.push(Matrix::from_values(rows, columns, tangents));
        self.falls.push(Matrix::from_values(rows, columns, falls));
        self.bent.push(Matrix::from_values(rows, columns, bent));
        self.unsure.push(unsure);
    }

    /// The same with what `lines` know of its units in all sets: narrower ends, and signs that are those of the base point.
    pub(super) fn narrowed(mut self, target: &Target, lines: &Lines) -> Self {
        for layer in 0..target.hidden() {
            let activation = target.shared.network.layers()[layer].activation();
            let units = self.units[layer].values_mut().iter_mut().zip(self.bent[layer].values_mut());
            let lines = lines[layer].values().iter().zip(target.reach[layer].values());
            for ((unit, bent), (line, &reach)) in units.zip(lines) {
                *unit = unit.narrowed(line);
                *bent = unit.bent(activation, reach);
            }
            self.open[layer] = Open::new(&self.units[layer]);
        }
        self
    }

    /// Gives a unit another share: that with which flips that move it by `moves` (up where z ≤ 0, down where z > 0)
    /// have the least excess together.
    pub(super) fn tune(&mut self, target: &Target, layer: usize, row: usize, j: usize, moves: &[f64]) {
        let (z, error, left) = (self.z[layer].get(row, j), target.error(layer, row, j), self.moves_left());
        let unit = &mut self.units[layer].row_mut(row)[j];
        let (activation, reach) = (target.shared.network.layers()[layer].activation(), target.reach[layer].get(row, j));
        let (beyond, sure) = (unit.beyond(), z.abs() - error);
        if !unit.is_sure || unit.share == 0.0 {
            return;
        }
        let whole = Unit::new(z, sure, unit.ends, left);
        let least = beyond / (beyond + sure) * (1.0 + 8.0 * SLACK);
        let total = |unit: &Unit| moves.iter().map(|&x| unit.share * relu(x - unit.threshold)).sum::<f64>();
        let mut best = (total(&whole), whole);
        for part in 0..SHARES {
            let share = least + (1.0 - least) * part as f64 / SHARES as f64;
            let tried = whole.with_share(share.min(1.0), sure, beyond, left);
            if total(&tried) < best.0 {
                best = (total(&tried), tried);
            }
        }
        *unit = best.1;
        self.bent[layer].row_mut(row)[j] = unit.bent(activation, reach);
    }

    /// Bytes that a base point takes for each unit.
    pub(super) const BYTES_OF_UNIT: usize = 4 * size_of::<f64>() + size_of::<Unit>() + size_of::<u32>();

    /// Bytes that a base point takes, about.
    pub(super) fn bytes(target: &Target) -> usize {
        let units = target.first_unit[target.first_unit.len() - 1];
        units * Self::BYTES_OF_UNIT + size_of_val(&target.capacities[..])
    }

    /// The margin of y over `k` as computed.
    pub(super) fn margin(&self, k: ClassId) -> f64 {
        let logits = self.z[self.z.len() - 1].row(0);
        logits[self.y.index()] - logits[k.index()]
    }
}
