"""The program for networks with one hidden layer.

For target t, class y and other class k, with u = W1[:, y] - W1[:, k] and P >= 0:

    margin = b1[y] - b1[k] + sum_m P_tm sum_j u_j h_mj,       h_mj = relu(x_mj)
    x_mj = H_mj + sum_f P_mn s_f W0[d, j] z_f                 f = (n, d) a flip, s_f = 1 - 2 X_nd, z_f binary
    sum_f z_f <= Q,   sum_{f at n} z_f <= q_n for every node n

A unit with lo >= 0 has h = x, one with hi <= 0 has h = 0. Of the others, u_j > 0 makes the margin rise with h, so
h >= 0 and h >= x hold h at relu(x) wherever the margin is to be small; u_j < 0 needs a binary a: h <= hi a and
h <= x - lo (1 - a), that is h <= 0 or h <= x. The sign is all that matters: `margin <= 0` is a constraint, the first
solution ends the search, and there is none if and only if the margin is always positive.
"""

import numpy as np
from first_layer import FirstLayer
from program import Program


class OneLayer(FirstLayer):
    """What one node sees: neighbours m with P_tm, their neighbours n, and H_mj."""

    def __init__(self, world, node):
        middle, self.to_target = world.neighbours(node)
        super().__init__(world, middle)

    def forward(self, hidden):
        weights, bias = self.world.head
        return self.to_target @ np.maximum(hidden, 0) @ weights + bias

    def interval(self, rows, columns):
        return self.first_interval(rows, columns)

    def start(self):
        return (self.clean > 0).astype(float), np.ones_like(self.clean)

    def improve(self, slopes, bounds, moves, pace):
        return self.first_improve(slopes, bounds, moves, pace)

    def additive(self, u, constant, bounds, slopes, rows, columns):
        return self.first_additive(self.to_target[:, None] * u, constant, bounds, slopes, rows, columns)

    def solve(self, u, constant, rows, columns, bounds, seconds):
        """A set of flips with margin <= 0 from the candidates: the flips, None if there is none, or "time"."""
        lo, hi = bounds
        if len(rows) == 0:
            return [] if constant + self.to_target @ np.maximum(self.clean, 0) @ u <= 0 else None
        factors = self.to_target[:, None] * u
        always = lo >= 0
        open_ = np.argwhere((lo < 0) & (hi > 0) & (factors != 0))
        concave = open_[factors[tuple(open_.T)] < 0]
        convex = open_[factors[tuple(open_.T)] > 0]
        at_concave, at_convex = tuple(concave.T), tuple(convex.T)

        program = Program()
        z = program.variables(len(rows), whole=True)
        h_concave = program.variables(len(concave), hi[at_concave])
        h_convex = program.variables(len(convex), hi[at_convex])
        a = program.variables(len(concave), whole=True)

        base = constant + (factors * always * self.clean).sum()
        weights = (self.p.T @ (factors * always)) @ self.world.w0.T
        linear = weights[rows, columns] * self.signs(rows, columns)
        margin = (z, linear[None]), (h_concave, factors[at_concave][None]), (h_convex, factors[at_convex][None])
        program.at_most(-base, *margin)
        self.keep_budget(program, z, rows)
        program.at_most(np.zeros(len(concave)), (h_concave, 1), (a, -hi[at_concave]))
        # h <= x - lo (1 - a)
        effects = self.effects(concave, rows, columns)
        blocks = (z, -effects), (h_concave, 1), (a, -lo[at_concave])
        program.at_most(self.clean[at_concave] - lo[at_concave], *blocks)
        program.at_most(-self.clean[at_convex], (z, self.effects(convex, rows, columns)), (h_convex, -1))
        found = program.solve(margin, seconds)
        if found is None or isinstance(found, str):
            return found
        chosen = found[z] > 0.5
        return list(zip(rows[chosen].tolist(), columns[chosen].tolist()))
