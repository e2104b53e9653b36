"""A mixed-integer program, put together block by block and solved by HiGHS."""

import numpy as np
import scipy.optimize
import scipy.sparse


class Program:
    """Variables from 0 to an upper bound and constraints `sum of blocks <= upper`."""

    def __init__(self):
        self.upper, self.whole, self.constraints = [], [], []

    def variables(self, count, upper=1.0, whole=False):
        """The places of `count` new variables."""
        start = len(self.upper)
        self.upper.extend(np.broadcast_to(upper, count).tolist())
        self.whole.extend([whole] * count)
        return start + np.arange(count)

    def at_most(self, upper, *blocks):
        """A constraint for each entry of `upper`. A block is a pair of variables and coefficients: a matrix with a row
        for each constraint, or numbers, where constraint i has the i-th variable alone."""
        upper = np.atleast_1d(upper)
        if len(upper):
            self.constraints.append((upper, blocks))

    def solve(self, objective, seconds):
        """The values of the variables where there is a solution, None if there is none, or "time". The objective, given
        as blocks too, only shows the way: the first solution ends the search."""
        constraints = [
            scipy.optimize.LinearConstraint(scipy.sparse.csr_matrix(self.matrix(len(upper), blocks)), -np.inf, upper)
            for upper, blocks in self.constraints
        ]
        result = scipy.optimize.milp(
            self.matrix(1, objective)[0],
            constraints=constraints,
            integrality=np.array(self.whole, float),
            bounds=scipy.optimize.Bounds(0, np.array(self.upper)),
            # Any gap will do.
            options={"mip_rel_gap": 1e30, "time_limit": max(seconds, 0.01)},
        )
        if result.x is not None:
            return result.x
        return None if result.status == 2 else "time"

    def matrix(self, count, blocks):
        matrix = np.zeros((count, len(self.upper)))
        for variables, values in blocks:
            if np.ndim(values) == 2:
                matrix[:, variables] = values
            else:
                matrix[np.arange(count), variables] = values
        return matrix
