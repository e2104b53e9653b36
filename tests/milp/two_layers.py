"""The program for networks with two hidden layers.

For target t, class y and other class k, with u = W2[:, y] - W2[:, k] and P >= 0:

    margin = b2[y] - b2[k] + sum_m P_tm sum_j u_j g_mj,       g_mj = relu(y_mj)
    y_mj = b1[j] + sum_n P_mn sum_i W1[i, j] h_ni,            h_ni = relu(x_ni)
    x_ni = H_ni + sum_f P_nl s_f W0[d, i] z_f                 f = (l, d) a flip, s_f = 1 - 2 X_ld, z_f binary
    sum_f z_f <= Q,   sum_{f at l} z_f <= q_l for every node l

In the second hidden layer, as in the only one of a network with one, the sign of u_j tells which side of relu the
program would leave, and that side alone is written down: g >= 0 and g >= y where u_j > 0; where u_j < 0, g <= hi a and
g <= y - lo (1 - a) with a binary a. W1 has both signs, so h of a first layer's unit may be wanted larger by one y and
smaller by another: where lo < 0 < hi, all four hold, which leave h = relu(x) alone: h >= 0, h >= x, h <= hi a and
h <= x - lo (1 - a).

Bounds of y come from h between relu(lo) and relu(hi), and from `first_additive` with y or -y in place of the margin:
y >= base - the gains of the flips, so y >= base - the largest sum of gains of an admissible set. Both hold, so the
better one does for each unit.
"""

import numpy as np
from first_layer import FirstLayer, chords, largest
from program import Program


class TwoLayers(FirstLayer):
    """What one node sees: neighbours m with P_tm, their neighbours n with P_mn, and what those see."""

    def __init__(self, world, node):
        self.second, self.to_target = world.neighbours(node)
        middle, self.to_second = world.towards(self.second)
        self.w1, self.b1 = world.layers[1]
        self.bounds = None
        super().__init__(world, middle)

    def forward(self, hidden):
        weights, bias = self.world.head
        return self.to_target @ np.maximum(self.outputs(hidden), 0) @ weights + bias

    def outputs(self, hidden):
        """Pre-activations of the second hidden layer, m × j, from those of the first."""
        return self.to_second @ (np.maximum(hidden, 0) @ self.w1) + self.b1

    def interval(self, rows, columns):
        """lo and hi of the first hidden layer, and lo and hi of the second."""
        first = self.first_interval(rows, columns)
        below, above = (np.maximum(bound, 0) for bound in first)
        up, down = np.maximum(self.w1, 0), np.minimum(self.w1, 0)
        lo = self.to_second @ (below @ up + above @ down) + self.b1
        hi = self.to_second @ (above @ up + below @ down) + self.b1
        least, most = self.second_interval(first, rows, columns)
        lo, hi = np.maximum(lo, least), np.minimum(hi, most)
        if self.bounds is not None:
            # What holds for all candidates holds for some of them.
            lo, hi = np.maximum(lo, self.bounds[1][0]), np.minimum(hi, self.bounds[1][1])
        return first, (lo, hi)

    def second_interval(self, first, rows, columns):
        """Bounds of y by `first_additive` with mix = 1, for all units at once, with y and with -y. Of several choices
        for `under`, the best one counts. Axes: choice, sign, m, j, n, i; numbers for units lack the last two."""
        lo, hi = first
        open_ = (lo < 0) & (hi > 0)
        factors = np.einsum("mn,ij->mjni", self.to_second, self.w1)
        factors = np.array([factors, -factors])
        concave = np.where(open_ & (factors < 0), factors, 0)
        convex = np.where(open_ & (factors > 0), factors, 0)
        unders = self.clean > 0, 0.0, 1.0
        linear = np.array([factors * (lo >= 0) + convex * under for under in unders])
        base = (linear * self.clean + concave * np.maximum(self.clean, 0)).sum(axis=(-2, -1))
        least = (base - self.largest_change(linear, concave, rows, columns)).max(axis=0)
        return least[0] + self.b1, -least[1] + self.b1

    def largest_change(self, linear, concave, rows, columns):
        """The largest sum of gains over admissible sets of candidates, where a flip that moves x by a has the gain
        -sum_ni (linear_ni a_ni + concave_ni (relu(H_ni / Q + a_ni) - relu(H_ni / Q)))."""
        share = self.clean / max(self.world.global_budget, 1)
        tops = []
        for node, here in enumerate(self.split(rows)):
            near = np.flatnonzero(self.p[:, node])
            seen = np.flatnonzero(self.to_second[:, near].any(axis=1))
            moves = self.signs(rows[here], columns[here])[:, None] * self.world.w0[columns[here]]
            a = self.p[near, node][:, None] * moves[:, None, :]
            bent = np.maximum(share[near] + a, 0) - np.maximum(share[near], 0)
            curved = np.tensordot(concave[:, seen][:, :, :, near], bent, ([3, 4], [1, 2]))
            straight = np.einsum("csmjni,n->csmji", linear[:, :, seen][:, :, :, :, near], self.p[near, node])
            # The last axis is the candidate.
            gains = np.maximum(-np.tensordot(straight, moves, (4, 1)) - curved, 0)
            rest = len(moves) - self.local[node]
            if rest > 0:
                gains = np.partition(gains, rest - 1)[..., rest:]
            top = np.zeros((gains.shape[-1], *linear.shape[:-2]))
            top[:, :, :, seen] = np.moveaxis(gains, -1, 0)
            tops.append(top)
        return largest(np.concatenate(tops), self.world.global_budget)

    def start(self):
        under = (self.clean > 0).astype(float)
        return under, np.ones_like(self.clean), (self.outputs(self.clean) > 0).astype(float)

    def improve(self, slopes, bounds, moves, pace):
        under = slopes[2]
        y = self.outputs(self.clean + moves.sum(axis=0))
        return *self.first_improve(slopes[:2], bounds[0], moves, pace), under + pace * ((y > 0) - under)

    def additive(self, u, constant, bounds, slopes, rows, columns):
        """The bound of `first_additive`, for a linear bound in place of each relu(y_mj).

        Proof: with c = P_tm u_j, c relu(y) = c y if lo >= 0, and 0 if hi <= 0. Else c > 0 has c relu(y) >= c under y
        for any `under` in [0, 1], and c < 0 has c relu(y) >= c chord (y - lo), since relu is below its chord. y is
        linear in relu(x_ni), so the margin is at least a constant plus a sum of factors_ni relu(x_ni)."""
        lo, hi = bounds[1]
        under, mix, second_under = slopes
        c = self.to_target[:, None] * u
        open_ = (lo < 0) & (hi > 0)
        chord = chords(lo, hi)
        slope = c * np.where(open_, np.where(c > 0, second_under, chord), lo >= 0)
        shift = np.where(open_ & (c < 0), -c * chord * lo, 0)
        constant = constant + (slope * self.b1 + shift).sum()
        factors = self.to_second.T @ slope @ self.w1.T
        return self.first_additive(factors, constant, bounds[0], (under, mix), rows, columns)

    def solve(self, u, constant, rows, columns, bounds, seconds):
        """A set of flips with margin <= 0 from the candidates: the flips, None if there is none, or "time"."""
        if len(rows) == 0:
            clean = self.to_target @ np.maximum(self.outputs(self.clean), 0) @ u
            return [] if constant + clean <= 0 else None
        (lo, hi), (second_lo, second_hi) = bounds
        c = self.to_target[:, None] * u
        open_ = np.argwhere((lo < 0) & (hi > 0))
        second_open = np.argwhere((second_lo < 0) & (second_hi > 0) & (c != 0))
        convex = second_open[c[tuple(second_open.T)] > 0]
        concave = second_open[c[tuple(second_open.T)] < 0]
        at_open, at_convex, at_concave = tuple(open_.T), tuple(convex.T), tuple(concave.T)

        program = Program()
        z = program.variables(len(rows), whole=True)
        h = program.variables(len(open_), hi[at_open])
        a = program.variables(len(open_), whole=True)
        g_convex = program.variables(len(convex), second_hi[at_convex])
        g_concave = program.variables(len(concave), second_hi[at_concave])
        second_a = program.variables(len(concave), whole=True)

        def linear(factors):
            """Constant, coefficients of z and coefficients of h of sum_ni factors_kni h_ni."""
            steady = factors * (lo >= 0)
            weights = steady.transpose(0, 2, 1) @ self.p
            moves = self.signs(rows, columns)[:, None] * self.world.w0[columns]
            by_flip = np.einsum("kif,fi->kf", weights[:, :, rows], moves, optimize=True)
            return (steady * self.clean).sum(axis=(1, 2)), (z, by_flip), (h, factors[:, at_open[0], at_open[1]])

        def second(units):
            """The same for y of units of the second hidden layer."""
            factors = self.to_second[units[:, 0]][:, :, None] * self.w1.T[units[:, 1]][:, None, :]
            base, *blocks = linear(factors)
            return base + self.b1[units[:, 1]], blocks

        steady = c * (second_lo >= 0)
        base, *blocks = linear((self.to_second.T @ steady @ self.w1.T)[None])
        base = base + constant + (steady * self.b1).sum()
        margin = *blocks, (g_convex, c[at_convex][None]), (g_concave, c[at_concave][None])
        program.at_most(-base, *margin)
        self.keep_budget(program, z, rows)

        effects = self.effects(open_, rows, columns)
        program.at_most(-self.clean[at_open], (z, effects), (h, -1))
        program.at_most(np.zeros(len(h)), (h, 1), (a, -hi[at_open]))
        program.at_most(self.clean[at_open] - lo[at_open], (z, -effects), (h, 1), (a, -lo[at_open]))

        y, blocks = second(convex)
        program.at_most(-y, *blocks, (g_convex, -1))
        y, blocks = second(concave)
        program.at_most(np.zeros(len(concave)), (g_concave, 1), (second_a, -second_hi[at_concave]))
        minus = [(variables, -values) for variables, values in blocks]
        room = y - second_lo[at_concave]
        program.at_most(room, *minus, (g_concave, 1), (second_a, -second_lo[at_concave]))
        found = program.solve(margin, seconds)
        if found is None or isinstance(found, str):
            return found
        chosen = found[z] > 0.5
        return list(zip(rows[chosen].tolist(), columns[chosen].tolist()))
