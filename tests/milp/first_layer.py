"""What all programs share: the first hidden layer near a node, and which flips can matter there."""

import itertools

import numpy as np

# Room for rounding where flips are left out: the bound that excludes them must exceed this.
SAFE = 1e-9


def largest(values, count):
    """The sum of the `count` largest entries along axis 0; entries must not be negative."""
    if count == 0:
        return np.zeros(values.shape[1:])
    if len(values) > count:
        values = np.partition(values, len(values) - count, axis=0)[len(values) - count :]
    return values.sum(axis=0)


def chords(lo, hi):
    """Where lo < 0 < hi, the slope of the chord of relu between the two; else 0."""
    open_ = (lo < 0) & (hi > 0)
    return np.where(open_, hi / np.where(open_, hi - lo, 1), 0)


class FirstLayer:
    """Pre-activations x_mj of the first hidden layer at the nodes m of `middle`, their neighbours n of `outer`, and the
    flips there. Subclasses say how the margin depends on relu(x)."""

    def __init__(self, world, middle):
        self.world = world
        self.middle = middle
        self.outer, self.p = world.towards(middle)
        self.x = np.array([world.x(n) for n in self.outer])
        self.local = np.minimum(world.local[self.outer], world.global_budget)
        self.clean = self.hidden(self.x)
        # All candidates: row n of `outer`, attribute.
        pairs = [(np.full(len(allowed), row), allowed) for row, allowed in enumerate(map(world.allowed, self.outer))]
        self.rows, self.columns = (np.concatenate(part) for part in zip(*pairs))
        self.bounds = self.interval(self.rows, self.columns)

    def hidden(self, x):
        """Pre-activations, m × j, under the attributes `x`."""
        return self.p @ (x.astype(float) @ self.world.w0) + self.world.b0

    def logits(self, flips):
        x = self.x.copy()
        for row, column in flips:
            x[row, column] = not x[row, column]
        return self.forward(self.hidden(x))

    def forward(self, hidden):
        """Logits of the node from the pre-activations of the first hidden layer."""
        raise NotImplementedError

    def interval(self, rows, columns):
        """Bounds on pre-activations over all admissible subsets of the candidates, as `additive` and `solve` need
        them."""
        raise NotImplementedError

    def start(self):
        """The first choice of slopes for `additive`."""
        raise NotImplementedError

    def improve(self, slopes, bounds, moves, pace):
        """Slopes that go towards what is best against the flips of `moves`."""
        raise NotImplementedError

    def additive(self, u, constant, bounds, slopes, rows, columns):
        """`base` and a gain for each candidate, such that margin(F) >= base - the gains of F for every admissible set F
        of candidates, between whose `bounds` pre-activations then stay."""
        raise NotImplementedError

    def signs(self, rows, columns):
        return 1.0 - 2.0 * self.x[rows, columns]

    def split(self, rows):
        """For each node of `outer`, where its candidates are; `rows` ascend."""
        starts = np.searchsorted(rows, np.arange(len(self.outer) + 1))
        return [slice(start, end) for start, end in itertools.pairwise(starts)]

    def first_interval(self, rows, columns):
        """lo and hi, m × j, over all admissible subsets of the candidates: per unit a flip is worth P_mn times its
        weight, so the Q most valuable ones, at most q_n of them at n, are the extreme set."""
        units = self.world.w0.shape[1]
        tops = {sign: np.zeros((len(self.outer), self.local.max(initial=0), units)) for sign in (1, -1)}
        for n, here in enumerate(self.split(rows)):
            moves = self.signs(rows[here], columns[here])[:, None] * self.world.w0[columns[here]]
            count = min(self.local[n], len(moves))
            if count == 0:
                continue
            for sign, top in tops.items():
                gains = np.maximum(sign * moves, 0)
                top[n, :count] = np.partition(gains, len(gains) - count, axis=0)[len(gains) - count :]
        change = {sign: np.zeros_like(self.clean) for sign in tops}
        for m in range(len(self.middle)):
            near = np.flatnonzero(self.p[m])
            for sign, top in tops.items():
                values = (self.p[m, near][:, None, None] * top[near]).reshape(-1, units)
                change[sign][m] = largest(values, self.world.global_budget)
        return self.clean - change[-1], self.clean + change[1]

    def first_additive(self, factors, constant, bounds, slopes, rows, columns):
        """`base` and gains as in `additive`, for constant + sum of factors_mj relu(x_mj) in place of the margin. The
        two parts of `slopes`, `under` and `mix`, may be anything in [0, 1].

        Proof: relu(x) = x if lo >= 0, and 0 if hi <= 0. Else each term factors_mj relu(x_mj) is bounded from below.
        * factors_mj > 0: relu(x) >= under x, since 0 <= under <= 1.
        * factors_mj < 0: relu, being convex, is below its chord hi / (hi - lo) (x - lo) between lo and hi. And relu is
          subadditive, relu(y + z) <= relu(y) + relu(z): with x = H + a_1 + ... + a_r, r <= Q the number of flips, each
          a_i taken together with H / Q, and Q - r times H / Q left over,
          relu(x) <= Q relu(H / Q) + sum_i (relu(H / Q + a_i) - relu(H / Q)).
          So relu(x) is below every mix of these two.
        All of this is a constant plus a number for each flip."""
        lo, hi = bounds
        under, mix = slopes
        q = max(self.world.global_budget, 1)
        open_ = (lo < 0) & (hi > 0)
        concave = open_ & (factors < 0)
        chord = chords(lo, hi)
        slope = np.where(open_, np.where(factors > 0, under, (1 - mix) * chord), lo >= 0)
        rest = np.maximum(self.clean / q, 0)
        shift = np.where(concave, mix * q * rest - (1 - mix) * chord * lo, 0)
        base = constant + (factors * (slope * self.clean + shift)).sum()
        signs = self.signs(rows, columns)
        gains = -((self.p.T @ (factors * slope)) @ self.world.w0.T)[rows, columns] * signs
        units = np.flatnonzero((concave & (mix > 0)).any(axis=0))
        scaled = np.where(concave, mix * factors, 0)[:, units]
        for n, here in enumerate(self.split(rows)):
            moves = signs[here, None] * self.world.w0[columns[here]][:, units]
            for m in np.flatnonzero(self.p[:, n]) if len(moves) else ():
                with_flip = np.maximum(self.clean[m, units] / q + self.p[m, n] * moves, 0)
                gains[here] -= (with_flip - rest[m, units]) @ scaled[m]
        return base, gains

    def first_improve(self, slopes, bounds, moves, pace):
        under, mix = slopes
        lo, hi = bounds
        x = self.clean + moves.sum(axis=0)
        q = max(self.world.global_budget, 1)
        rest = np.maximum(self.clean / q, 0)
        by_flip = q * rest + (np.maximum(self.clean / q + moves, 0) - rest).sum(axis=0)
        by_chord = np.where(hi > lo, hi / np.where(hi > lo, hi - lo, 1), 0) * (x - lo)
        return under + pace * ((x > 0) - under), mix + pace * ((by_flip < by_chord) - mix)

    def best(self, gains, rows, count):
        """An admissible set of at most `count` candidates with the largest sum of gains: the largest ones, as long as
        there is room at their nodes. Gains that are not positive are left out."""
        chosen, used = [], np.zeros(len(self.outer), int)
        for place in np.argsort(-gains):
            if len(chosen) == count or gains[place] <= 0:
                break
            if used[rows[place]] < self.local[rows[place]]:
                used[rows[place]] += 1
                chosen.append(place)
        return np.array(chosen, int)

    def prune(self, u, constant):
        """Candidates that a set with margin <= 0 can contain, with their gains, and bounds over those. So many are left
        at least as the limits say; also how many would be left without that.

        Let margin(F) >= base - sum_{f in F} gain_f for every admissible F (`additive`). Let T be the largest sum of
        gains over admissible sets of at most Q - 1 flips (`best`: such sets are the independent sets of a matroid,
        where taking the largest first is optimal). A set that contains f consists of f and of such a set, so its margin is at
        least base - gain_f - T. Where that is positive, no set with margin <= 0 contains f: leaving f out changes no
        answer. Then it is enough that everything holds for sets of what is left: bounds are taken anew over those, and
        the argument repeated.

        Slopes go towards what is best against the set that the bound selects; any would be valid."""
        rows, columns, bounds = self.rows, self.columns, self.bounds
        gains = np.zeros(len(rows))
        slopes = self.start()
        still = 0
        least = self.world.limits.least
        for step in range(40):
            base, gains = self.additive(u, constant, bounds, slopes, rows, columns)
            chosen = self.best(gains, rows, self.world.global_budget)
            # `chosen` is found greedily, so all but its last are a best set of one flip less.
            others = gains[chosen[: max(self.world.global_budget - 1, 0)]].sum()
            keep = base - gains - others <= SAFE
            needed = int(keep.sum())
            keep[np.argsort(-gains)[:least]] = True
            still = 0 if keep.sum() < 0.95 * len(keep) else still + 1
            slopes = self.improve(slopes, bounds, self.moves(rows[chosen], columns[chosen]), 2 / (step + 3))
            if not keep.all():
                rows, columns, gains = rows[keep], columns[keep], gains[keep]
                bounds = self.interval(rows, columns)
            if len(rows) <= least or still == 6:
                break
        return rows, columns, gains, bounds, needed

    def moves(self, rows, columns):
        """By how much each flip moves the pre-activations: flips × m × j."""
        weights = self.signs(rows, columns)[:, None] * self.world.w0[columns]
        return self.p[:, rows].T[:, :, None] * weights[:, None, :]

    def effects(self, units, rows, columns):
        """By how much each flip moves the pre-activations of `units`, pairs (m, j): units × flips."""
        weights = self.world.w0[columns][:, units[:, 1]].T
        return self.p[units[:, 0]][:, rows] * weights * self.signs(rows, columns)

    def keep_budget(self, program, z, rows):
        """At most Q flips, and at most q_n of them at node n."""
        budget = np.zeros((1 + len(self.outer), len(z)))
        budget[0] = 1
        budget[1 + rows, np.arange(len(z))] = 1
        program.at_most(np.concatenate([[self.world.global_budget], self.local]), (z, budget))
