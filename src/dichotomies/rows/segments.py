"""Scores of many binary problems, concatenated in flat arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._common.validation import LEAST_WEIGHT, MOST_ROWS, bounded_counts
from dichotomies._kernels.isotonic import SegmentArrays
from dichotomies._kernels.score_maps import FARTHEST

T = TypeVar("T")


@dataclass(frozen=True)
class Segments:
    """Scores, targets and weights of m nodes, concatenated.

    Parameters
    ----------
    scores : array of shape (n,)
        Finite scores; log-odds of the positive side if the scorer provides them. Beyond ±1e100 they are read
        as ±1e100.
    targets : boolean array of shape (n,)
        True for rows on the positive side; at a node of a tree, the left one.
    offsets : integer array of shape (m + 1,)
        Node k's rows are ``offsets[k]`` up to, not including, ``offsets[k + 1]``.
    weights : array of shape (n,), optional
        Weights >= 0 of the rows: weight 2 is equivalent to two copies of the row.
    groups : integer array of shape (m,), optional
        Groups of nodes from 0 on, such as their depths, for calibrators that fit all nodes together.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import Segments
    >>> two = Segments([5.0, -4.0, 1.0, 2.0], [True, False, False, True], [0, 3, 4])
    >>> len(two), two.n_rows
    (2, array([3, 1]))
    """

    scores: FloatArray
    targets: BoolArray
    offsets: IntArray
    weights: FloatArray | None = None
    groups: IntArray | None = None

    def __post_init__(self) -> None:
        self._set("scores", bounded(np.ascontiguousarray(self.scores, dtype=np.float64)))
        self._set("targets", np.ascontiguousarray(self.targets, dtype=np.bool_))
        self._set("offsets", np.ascontiguousarray(self.offsets, dtype=np.intp))
        if self.weights is not None:
            self._set("weights", np.ascontiguousarray(self.weights, dtype=np.float64))
        n = len(self.scores)
        if len(self.targets) != n or len(self.row_weights) != n:
            raise ValueError(
                f"Scores, targets and weights must be of one length; there are {n} scores, "
                f"{len(self.targets)} targets and {len(self.row_weights)} weights."
            )
        ends = self.offsets[[0, -1]] if len(self.offsets) else self.offsets
        if ends.tolist() != [0, n] or (np.diff(self.offsets) < 0).any():
            raise ValueError(
                f"Offsets must increase from 0 to the number of scores, {n}; got {self.offsets}."
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def longest(self) -> int:
        """Rows of the longest segment: at the nodes of a tree, all rows."""
        return int(np.diff(self.offsets).max(initial=0))

    @property
    def arrays(self) -> SegmentArrays:
        """The segments as kernels take them."""
        return SegmentArrays(self.scores, self.targets, self.counts, self.offsets)

    @cached_property
    def row_weights(self) -> FloatArray:
        """The weight of each row, 1 by default."""
        return np.ones(len(self.scores)) if self.weights is None else self.weights

    @cached_property
    def counts(self) -> FloatArray:
        """The weight of each row, scaled in segments where weights are huge or tiny: see `bounded_counts`."""
        if self.weights is None or _are_usual(self.weights, self.longest):
            return self.row_weights
        parts = np.split(self.row_weights, self.offsets[1:-1])
        return np.concatenate([bounded_counts(part) for part in parts])

    @cached_property
    def n_rows(self) -> IntArray:
        """Number of rows with positive weight in each segment."""
        return self.count(self.row_weights > 0)

    @cached_property
    def order(self) -> IntArray:
        """Indices (n,) that sort the rows by score within each segment."""
        order = np.empty(len(self.scores), dtype=np.intp)
        for begin, end in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            np.add(np.argsort(self.scores[begin:end], kind="stable"), begin, out=order[begin:end])
        return order

    @cached_property
    def _remembered(self) -> dict[object, Any]:
        return {}

    def remember(self, key: object, compute: Callable[[], T]) -> T:
        """Return what `compute` returns, from the second call with this `key` on without a call of it."""
        if key not in self._remembered:
            self._remembered[key] = compute()
        found: T = self._remembered[key]
        return found

    def count(self, rows: BoolArray) -> IntArray:
        """Count the rows of each segment where `rows` is True."""
        return np.diff(np.concatenate([[0], np.cumsum(rows)])[self.offsets])

    def take(self, rows: BoolArray) -> Segments:
        """Return the same segments with only the rows where `rows` is True."""
        offsets = np.concatenate([[0], np.cumsum(self.count(rows))])
        weights = None if self.weights is None else self.weights[rows]
        return Segments(self.scores[rows], self.targets[rows], offsets, weights, self.groups)

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the weighted sum of `values`, one per row, over each segment."""
        segment = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return np.bincount(segment, self.row_weights * values, len(self)).astype(np.float64)


def _are_usual(weights: FloatArray, longest: int) -> bool:
    """Return True if no segment's weights need scaling."""
    positive = weights[weights > 0.0]
    return bool(
        positive.max(initial=0.0) <= MOST_ROWS / max(longest, 1) and positive.min(initial=1.0) >= LEAST_WEIGHT
    )


def bounded(scores: FloatArray) -> FloatArray:
    """Return the scores, those beyond ±1e100 replaced; the same array if there are none."""
    far = len(scores) > 0 and max(scores.max(), -scores.min()) > FARTHEST
    return np.clip(scores, -FARTHEST, FARTHEST) if far else scores


def row_nll(log_odds: FloatArray, segments: Segments) -> FloatArray:
    """Return the unweighted NLL (n,) of every target of `segments` under `log_odds` (n,)."""
    z = np.where(segments.targets, -log_odds, log_odds)
    loss: FloatArray = np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    return loss


def segment_nll(log_odds: FloatArray, segments: Segments) -> FloatArray:
    """Return the weighted sum (m,) of the binary negative log-likelihood over each segment.

    Parameters
    ----------
    log_odds : array of shape (n,)
        Log-odds of the positive side.
    segments : Segments
        The rows they belong to.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import Segments, segment_nll
    >>> two = Segments([5.0, -4.0, 1.0, 2.0], [True, False, False, True], [0, 3, 4])
    >>> segment_nll(two.scores, two).round(3)
    array([1.338, 0.127])
    """
    return segments.sums(row_nll(log_odds, segments))
