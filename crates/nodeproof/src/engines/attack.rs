//! The exact network under given flips, on a slice.

use crate::dense::{Matrix, add_scaled, relu};
use crate::forward::{self, Activation, Values};
use crate::ids::ClassId;
use crate::prepare::Shard;
use crate::rounding::{Approximate, gamma_after, magnitude};
use crate::slice::{Hop, Slice, SlicedFlip};

/// Evaluates the network under flips, reusing its memory.
pub(crate) struct Attack<'a> {
    shared: &'a Shard<'a>,
    /// Change of `X_n W⁰` for each node of level 0 that is flipped at, and which those are.
    moves: Matrix,
    moved: Vec<u32>,
    flips: Vec<SlicedFlip>,
    values: Matrix,
    next: Matrix,
    sums: Vec<f64>,
}

/// The smallest margin under some flips.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttackMargin {
    /// The class that comes closest to y, or overtakes it.
    pub(crate) class: ClassId,
    /// `logit_y − logit_class`.
    pub(crate) margin: Approximate,
}

impl<'a> Attack<'a> {
    pub(crate) fn new(shared: &'a Shard<'a>) -> Self {
        Self {
            shared,
            moves: Matrix::default(),
            moved: Vec::new(),
            flips: Vec::new(),
            values: Matrix::default(),
            next: Matrix::default(),
            sums: Vec::new(),
        }
    }

    /// The smallest margin of `y` under `flips`.
    pub(crate) fn margin(
        &mut self,
        slice: &Slice,
        y: ClassId,
        flips: impl Iterator<Item = SlicedFlip>,
    ) -> AttackMargin {
        self.flip(slice, flips);
        for (i, layer) in self.shared.network.layers().iter().enumerate().skip(1) {
            let (hop, sums) = (slice.hop(i), &mut self.sums);
            forward::layer_into::<Values>(hop, layer, &self.values, Activation::Relu, sums, &mut self.next);
            std::mem::swap(&mut self.values, &mut self.next);
        }
        let logits = self.values.row(0);
        let others = (0..logits.len()).filter(|&k| k != y.index());
        let closest = others.reduce(|a, b| if logits[b] > logits[a] { b } else { a });
        let class = ClassId(closest.unwrap_or_else(|| unreachable!("a model has at least two classes")) as u32);
        let value = logits[y.index()] - logits[class.index()];
        let error = self.error(slice, y, class) + self.shared.overflow_error;
        AttackMargin { class, margin: Approximate { value, error } }
    }

    /// `Z⁰` under the flips, a row for each node of level 1.
    fn flip(&mut self, slice: &Slice, flips: impl Iterator<Item = SlicedFlip>) {
        let Shard { network, region, bounds, .. } = self.shared;
        let weight = network.attribute_weight();
        self.moved.clear();
        self.moved.resize(slice.level(0).len(), u32::MAX);
        self.flips.clear();
        self.flips.extend(flips);
        let mut rows = 0;
        for &(position, _) in &self.flips {
            if self.moved[position as usize] == u32::MAX {
                self.moved[position as usize] = rows;
                rows += 1;
            }
        }
        self.moves.reset(rows as usize, weight.columns());
        for &(position, attribute) in &self.flips {
            let sign = self.shared.sign(slice, (position, attribute));
            let row = self.moves.row_mut(self.moved[position as usize] as usize);
            add_scaled(row, sign, weight.row(attribute as usize));
        }
        self.values.reset(slice.level(1).len(), weight.columns());
        for (row, &node) in slice.level(1).iter().enumerate() {
            let values = self.values.row_mut(row);
            values.copy_from_slice(bounds.clean[0].row(region.level(1).place(node)));
            for (n, p) in slice.hop(0).row(row) {
                if self.moved[n] != u32::MAX {
                    add_scaled(values, p, self.moves.row(self.moved[n] as usize));
                }
            }
        }
    }

    /// How far `logit_y − logit_k` may be off by rounding, under any admissible flips (Lemma 32e).
    ///
    /// With ε the errors of the last hidden layer, `Σ_j (|W_jy| + |W_jk|) Σ_m P_tm (2 ε_mj + γ relu(hi_mj))` and γ times
    /// the biases.
    fn error(&self, slice: &Slice, y: ClassId, k: ClassId) -> f64 {
        let Shard { network, region, bounds, .. } = self.shared;
        let (y, k) = (y.index(), k.index());
        let Some(hidden) = bounds.hidden.last() else {
            let (place, first) = (region.level(1).place(slice.level(1)[0]), &bounds.first_error);
            return 2.0 * first.gammas[place] * (first.magnitude(place, y) + first.magnitude(place, k));
        };
        let level = bounds.hidden.len();
        let last = &network.layers()[level];
        let units = last.weight().rows();
        let gamma = gamma_after(slice.level(level).len() + units + 16);
        let mut error = gamma * (magnitude(last.bias()[y]) + magnitude(last.bias()[k]));
        for (n, p) in slice.hop(level).row(0) {
            let place = region.level(level).place(slice.level(level)[n]);
            for j in 0..units {
                let weight = magnitude(last.weight().get(j, y)) + magnitude(last.weight().get(j, k));
                let activation = gamma * magnitude(relu(hidden.hi.get(place, j)));
                error += weight * magnitude(p * (2.0 * hidden.error.unit(place, j) + activation));
            }
        }
        error
    }
}
