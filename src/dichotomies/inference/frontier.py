"""Search by waves: every row looks into its best nodes, all rows together, until its answer is certain.

It needs nothing of a scorer but the log-odds of chosen rows at chosen nodes, so it serves every learner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies._kernels.best_first import Ranking
    from dichotomies.learners import Scorer

#: Nodes that a row looks into per wave: at least this many, and this part of what it has reached. More nodes
#: per wave make fewer waves, and more visits than a search of one node at a time.
_FEWEST, _PART = 4, 4


@dataclass
class Frontier:
    """Nodes and classes that each row has reached and not looked into, in columns.

    Attributes
    ----------
    item : (n_rows, n_columns)
        A node, or ``~code`` of a class.
    reach : (n_rows, n_columns)
        Log-probability; minus infinity in unused columns, whose item is a class.
    n_visits : (n_rows,)
        Nodes evaluated so far.
    """

    scorer: Scorer
    left: IntArray
    right: IntArray
    ranking: Ranking
    X: Matrix
    item: IntArray = field(init=False)
    reach: FloatArray = field(init=False)
    n_visits: IntArray = field(init=False)

    def __post_init__(self) -> None:
        n_rows = self.X.shape[0]
        self.item, self.reach = np.zeros((n_rows, 1), dtype=np.intp), np.zeros((n_rows, 1))
        self.n_visits = np.zeros(n_rows, dtype=np.intp)

    @property
    def rank(self) -> FloatArray:
        """Rank of each class and bound of each node, see `Ranking`; minus infinity in unused columns."""
        slope, bias, floor = self.ranking
        rank = slope[self.item] * np.maximum(self.reach, floor) + bias[self.item]
        rank[np.isneginf(self.reach)] = -np.inf
        return rank

    def best(self, k: int, least: float) -> None:
        """Look into nodes until the `k` highest ranking classes of rank `least` or above are certain."""
        while True:
            rank = self.rank
            classes = np.where(self.item < 0, rank, -np.inf)
            bar = np.full(len(rank), least)
            if classes.shape[1] >= k:
                bar = np.maximum(bar, np.partition(classes, -k, axis=1)[:, -k])
            if not self.expand(np.where(self.item >= 0, rank, -np.inf), bar):
                return

    def beam(self, width: int) -> None:
        """Look into all nodes and keep the `width` highest ranking of what is reached, down to the leaves."""
        while self.expand(np.where(self.item >= 0, self.rank, -np.inf), None):
            if self.item.shape[1] > width:
                kept = np.argpartition(-self.rank, width - 1, axis=1)[:, :width]
                self.item = np.take_along_axis(self.item, kept, axis=1)
                self.reach = np.take_along_axis(self.reach, kept, axis=1)

    def expand(self, priority: FloatArray, bar: FloatArray | None) -> bool:
        """Look into nodes in order of priority; False where there is none.

        Parameters
        ----------
        priority : (n_rows, n_columns)
            Minus infinity where there is no node to look into.
        bar : (n_rows,) or None
            Least priority of interest; None looks into all nodes.
        """
        n_columns = priority.shape[1]
        width = n_columns if bar is None else min(n_columns, max(_FEWEST, n_columns // _PART))
        columns = np.argpartition(-priority, width - 1, axis=1)[:, :width]
        best = np.take_along_axis(priority, columns, axis=1)
        chosen = best > -np.inf
        if bar is not None:
            chosen &= best >= bar[:, None]
        if not chosen.any():
            return False
        rows, which = np.nonzero(chosen)
        self._look_into(rows, columns[rows, which])
        return True

    def _look_into(self, rows: IntArray, places: IntArray) -> None:
        """Replace nodes by their left children, and add the right ones in new columns."""
        nodes, reach = self.item[rows, places], self.reach[rows, places]
        s = self.scorer.pair_log_odds(self.X, rows, nodes)
        likelier = reach - np.log(1.0 + np.exp(-np.abs(s)))
        used = np.arange(len(rows)) - np.searchsorted(rows, rows)  # place among the row's own
        n_new = int(used.max()) + 1
        shape = len(self.item), n_new
        first = self.item.shape[1]
        self.item = np.concatenate([self.item, np.full(shape, -1)], axis=1)
        self.reach = np.concatenate([self.reach, np.full(shape, -np.inf)], axis=1)
        self.item[rows, places], self.reach[rows, places] = self.left[nodes], likelier + np.minimum(s, 0.0)
        new = rows, first + used
        self.item[new], self.reach[new] = self.right[nodes], likelier - np.maximum(s, 0.0)
        self.n_visits += np.bincount(rows, minlength=len(self.n_visits))

    def classes(self, k: int, least: float) -> tuple[IntArray, FloatArray]:
        """The `k` highest ranking classes that were reached, and their log-probabilities.

        -1 and minus infinity where there is no class of rank `least` or above.
        """
        rank = np.where(self.item < 0, self.rank, -np.inf)
        rank[rank < least] = -np.inf
        order = np.lexsort((~self.item, -rank), axis=1)[:, :k]
        is_found = np.take_along_axis(rank, order, axis=1) > -np.inf
        codes = np.where(is_found, ~np.take_along_axis(self.item, order, axis=1), -1)
        reach = np.where(is_found, np.take_along_axis(self.reach, order, axis=1), -np.inf)
        short = max(0, k - codes.shape[1])
        return (
            np.pad(codes, ((0, 0), (0, short)), constant_values=-1),
            np.pad(reach, ((0, 0), (0, short)), constant_values=-np.inf),
        )

    def take(self, rows: BoolArray) -> Frontier:
        """The same search of some of the rows."""
        few = Frontier(self.scorer, self.left, self.right, self.ranking, self.X[rows])
        few.item, few.reach, few.n_visits = self.item[rows], self.reach[rows], self.n_visits[rows]
        return few
