"""Platt scaling of all nodes of a tree together: slopes and intercepts are shrunk to those of their depth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.calibrators.multiclass._scaling import Hyperprior, best_spread
from dichotomies.rows.segments import Segments


class Widths(NamedTuple):
    """Prior knowledge of how much slopes and intercepts vary.

    Attributes
    ----------
    common, depth : float
        Standard deviations of the common slope around 1, and of a depth's slope as a part of the common one.
    of_nodes : Hyperprior
        Of the standard deviations over nodes.
    """

    common: float
    depth: float
    of_nodes: Hyperprior


#: Trained nodes differ: a penalised learner is the less sure the fewer rows a node has.
_OF_TRAINED_NODES = Widths(1.0, 0.2, Hyperprior(expected=(0.2, 0.3), largest=(3.0, 3.0)))
#: Scores from which on fits without a fold share the prior.
_MANY_SCORES = 5_000
#: Scores beyond this are read as this, so that squares and determinants do not overflow.
_LARGEST = 1e6
#: Log-odds that Newton's method may start from.
_USUAL_LOG_ODDS = 4.0
_MAX_ITER, _MAX_HALVINGS, _TOL, _ROUGH_TOL = 50, 20, 1e-8, 1e-5
#: Iterations toward the optimum of scores without a fold, from that of all.
_REFIT_STEPS = 3


@BINARY.register("shrunk-platt")
class ShrunkPlatt(BinaryCalibrator):
    """Platt scaling of all nodes together: slopes and intercepts shrunk to those of the node's depth.

    Node k's log-odds become ``a_k s + b_k``. The a_k are normal around one slope per depth, those around a
    common slope, and that around 1; the b_k are normal around 0, as left and right are arbitrary. The
    standard deviations over nodes are chosen by marginal likelihood. A node with few rows keeps the slope of
    its depth, one with many rows its own. By Proposition 1 the fits of the nodes are separate, and convex.

    On one scorer alone it shrinks slope and intercept to 1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.binary import BINARY, Segments
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(scale=2, size=3000)
    >>> y = rng.random(3000) < 1 / (1 + np.exp(-s))
    >>> nodes = Segments(3 * s, y, np.r_[0, 2980:3001:4])  # one node with many rows, five with four each
    >>> maps = BINARY.create("shrunk-platt").fit_segments(nodes)
    >>> maps.parameters[:, 0].round(1)
    array([0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
    """

    nodes_are_independent = False

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        return _maps(_Rows.of(segments).minimum(*_prior_and_start(segments)), segments)

    def fit_without(self, segments: Segments, fold: IntArray, n_folds: int) -> list[ScoreMaps]:
        """Calibrate without each fold; where there are many scores, under the prior of all of them.

        A few common slopes have then seen the rows of the fold, too.
        """
        if len(segments.scores) < _MANY_SCORES:
            return super().fit_without(segments, fold, n_folds)
        prior, start = _prior_and_start(segments)
        parts = [segments.take(fold != f) for f in range(n_folds)]
        return [_maps(_Rows.of(part).minimum(prior, start, _ROUGH_TOL, _REFIT_STEPS), part) for part in parts]


def shrunk_platt(segments: Segments, widths: Widths) -> FloatArray:
    """Return slopes and intercepts (2, m) of the log-odds of m nodes, shrunk as in `ShrunkPlatt`."""
    rows = _Rows.of(segments, widths)
    slope, intercept = rows.minimum(*rows.prior_and_start())
    return np.stack([np.maximum(slope, 0.0), intercept])


def _prior_and_start(segments: Segments) -> tuple[_Prior, FloatArray]:
    """Prior and first values, computed once: fits without a fold come before the fit to all scores."""
    return segments.remember(ShrunkPlatt, lambda: _Rows.of(segments).prior_and_start())


def _maps(theta: FloatArray, segments: Segments) -> ScoreMaps:
    """Return maps with these slopes and intercepts (2, m); the identity for nodes without rows."""
    slope, intercept = theta
    parameters = np.stack([np.maximum(slope, 0.0), intercept, np.zeros(len(slope))], axis=1)
    return ScoreMaps.affine(parameters, "shrunk-platt").identity_where_empty(segments)


@dataclass(frozen=True)
class _Prior:
    """Prior on slopes and intercepts: means (2, n_groups); precisions aa, ab, bb (3, n_groups or 1)."""

    mean: FloatArray
    precision: FloatArray


@dataclass(frozen=True)
class _Rows:
    """Scores of all nodes, and the group of nodes that shares parameters; a node alone by default."""

    segments: Segments
    group: IntArray
    n_groups: int
    widths: Widths

    @classmethod
    def of(cls, segments: Segments, widths: Widths = _OF_TRAINED_NODES) -> _Rows:
        some = np.diff(segments.offsets) > 0
        return cls(segments, np.flatnonzero(some), len(segments), widths)

    @cached_property
    def scores(self) -> FloatArray:
        return np.clip(self.segments.scores, -_LARGEST, _LARGEST)

    @cached_property
    def _longest_slope(self) -> float:
        """Slope that makes scores log-odds of ordinary size."""
        total = float(self.segments.counts.sum())
        mean = float(self.segments.counts @ np.abs(self.scores)) / total if total else 0.0
        return _USUAL_LOG_ODDS / max(mean, 1e-300) if mean else 1.0

    @cached_property
    def _targets(self) -> FloatArray:
        return self.segments.targets.astype(np.float64)

    @cached_property
    def _starts(self) -> IntArray:
        """First row of each node that has any."""
        offsets = self.segments.offsets
        return offsets[:-1][np.diff(offsets) > 0]

    @cached_property
    def _of(self) -> IntArray:
        """Group of each row."""
        sizes = np.diff(self.segments.offsets)
        return np.repeat(self.group, sizes[sizes > 0])

    def prior_and_start(self) -> tuple[_Prior, FloatArray]:
        """Prior of the nodes: around the slope of their depth and 0, as wide as is likeliest; first values.

        The width is chosen at the means, and again at the fit that this gives: far from the means a node
        without errors has hardly any curvature, which looks like knowledge of nothing.
        """
        everyone, depth = np.zeros(len(self.segments), dtype=np.intp), self.segments.groups
        common = self.slopes(everyone, np.ones(1), np.array([self.widths.common]))
        mean = common[everyone]
        if depth is not None:
            by_depth = self.slopes(depth, np.repeat(common, depth.max() + 1), self.widths.depth * common)
            mean = by_depth[depth]
        means = np.stack([mean, np.zeros(len(mean))])
        unit = max(float(common[0]), 1e-3)
        theta = means
        for _ in range(2):
            prior = _Prior(means, self._precision(theta, means, unit))
            theta = self.minimum(prior, theta, _ROUGH_TOL)
        return prior, theta

    def _precision(self, theta: FloatArray, mean: FloatArray, unit: float) -> FloatArray:
        """Precision of the likeliest width, by an expansion at `theta`; slopes in units of `unit`."""
        units = np.array([[unit], [1.0]])
        _, gradient, curvature = self.derivatives(theta)
        by_block = np.array([[unit**2], [unit], [1.0]])
        spread = best_spread(
            (theta - mean) / units, gradient * units, curvature * by_block, self.widths.of_nodes
        )
        return np.array(spread.precision(unit=unit))[:, None]

    def slopes(self, group: IntArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """Slope of each group of nodes without intercept, under a normal prior."""
        rows = replace(self, group=group[self.group], n_groups=len(mean))
        precision = np.stack(
            [1 / np.broadcast_to(deviation, mean.shape) ** 2, 0 * mean, np.full(len(mean), 1e12)]
        )
        means = np.stack([mean, np.zeros(len(mean))])
        slopes, _ = rows.minimum(_Prior(means, precision), means, _ROUGH_TOL)
        return np.asarray(np.maximum(slopes, 1e-3))

    def _sums(self, values: FloatArray) -> FloatArray:
        """Sums over each group."""
        if not len(self._starts):
            return np.zeros(self.n_groups)
        by_node = np.add.reduceat(values, self._starts)
        return np.bincount(self.group, by_node, self.n_groups).astype(np.float64)

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss (n_groups,), its gradient (2, n_groups) and second derivatives (3, n_groups): aa, ab, bb."""
        s, weights = self.scores, self.segments.counts
        z = theta[0][self._of] * s + theta[1][self._of]
        tail = np.exp(-np.abs(z))
        likelier = 1.0 / (1.0 + tail)
        error = weights * (np.where(z >= 0.0, likelier, tail * likelier) - self._targets)
        q = weights * tail * likelier * likelier
        loss = weights * (np.maximum(z, 0.0) - self._targets * z + np.log(1.0 + tail))
        qs = q * s
        gradient = np.stack([self._sums(error * s), self._sums(error)])
        return self._sums(loss), gradient, np.stack([self._sums(qs * s), self._sums(qs), self._sums(q)])

    def minimum(
        self, prior: _Prior, start: FloatArray, tol: float = _TOL, max_iter: int = _MAX_ITER
    ) -> FloatArray:
        """Slopes and intercepts (2, n_groups) with the highest posterior, by Newton's method.

        Parameters
        ----------
        start : (2, n_groups)
            First values.
        """
        theta = start.copy()
        theta[0] = np.minimum(theta[0], self._longest_slope)  # beyond, hardly a row has any curvature
        loss, gradient, curvature = self._posterior(theta, prior)
        for _ in range(max_iter):
            (g_a, g_b), (h_aa, h_ab, h_bb) = gradient, curvature
            step = np.stack([h_bb * g_a - h_ab * g_b, h_aa * g_b - h_ab * g_a]) / (h_aa * h_bb - h_ab * h_ab)
            moved = step[0] * g_a + step[1] * g_b > tol * (1 + np.abs(loss))
            step[:, ~moved] = 0.0
            if not moved.any():
                break
            reached = loss.copy()
            for _ in range(_MAX_HALVINGS):
                found = self._among(moved)._posterior(theta - step, prior)
                for old, new in zip((reached, gradient, curvature), found, strict=True):
                    old[..., moved] = new[..., moved]
                moved = reached > loss
                if not moved.any():
                    break
                step[:, moved] /= 2
            theta, loss = theta - step, reached
        return theta

    def _among(self, groups: BoolArray) -> _Rows:
        """The rows of some groups; these rows themselves if most are."""
        if groups.sum() > len(groups) / 2:
            return self
        segments = self.segments.take(groups[self._of])
        some = np.flatnonzero(np.diff(segments.offsets) > 0)
        place = np.cumsum(np.diff(self.segments.offsets) > 0) - 1
        return replace(self, segments=segments, group=self.group[place[some]])

    def _posterior(self, theta: FloatArray, prior: _Prior) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss, gradient and second derivatives as `derivatives` gives them, with those of the prior."""
        loss, (g_a, g_b), curvature = self.derivatives(theta)
        (d, e), (aa, ab, bb) = theta - prior.mean, prior.precision
        loss = loss + np.asarray(aa * d * d + 2 * ab * d * e + bb * e * e) / 2
        gradient = np.stack([g_a + aa * d + ab * e, g_b + ab * d + bb * e])
        return loss, gradient, curvature + prior.precision
