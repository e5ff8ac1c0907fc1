"""Platt scaling of all nodes of a tree together: slopes and intercepts are shrunk to those of their depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.calibrators.multiclass._scaling import best_spread

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.rows.segments import Segments

#: Standard deviations of the common slope around 1, and of a depth's slope as a part of the common one.
_COMMON, _DEPTH = 1.0, 0.2

#: Scores beyond this are read as this, so that squares and determinants do not overflow.
_LARGEST = 1e6
_MAX_ITER, _MAX_HALVINGS, _TOL = 50, 20, 1e-8


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
        nodes = _Rows.of(segments)
        everyone, depth = np.zeros(len(segments), dtype=np.intp), segments.groups
        common = nodes.slopes(everyone, np.ones(1), np.array([_COMMON]))
        mean = common[everyone]
        if depth is not None:
            by_depth = nodes.slopes(depth, np.repeat(common, depth.max() + 1), _DEPTH * common)
            mean = by_depth[depth]
        theta = np.stack([mean, np.zeros(len(mean))])
        unit = np.array([[max(float(common[0]), 1e-3)], [1.0]])
        _, gradient, curvature = nodes.derivatives(theta)
        by_block = np.array([unit[0] ** 2, unit[0], [1.0]])
        spread = best_spread(np.zeros_like(theta), gradient * unit, curvature * by_block)
        prior = np.array(spread.precision(unit=float(unit[0, 0])))[:, None]
        slope, intercept = nodes.minimum(theta, prior)
        parameters = np.stack([np.maximum(slope, 0.0), intercept, np.zeros(len(slope))], axis=1)
        return ScoreMaps.affine(parameters, "shrunk-platt").identity_where_empty(segments)


class _Rows(NamedTuple):
    """Scores of all nodes with the number of their node."""

    scores: FloatArray
    targets: FloatArray
    weights: FloatArray
    node: IntArray
    n_nodes: int

    @classmethod
    def of(cls, segments: Segments) -> _Rows:
        node = np.repeat(np.arange(len(segments)), np.diff(segments.offsets))
        targets = segments.targets.astype(np.float64)
        scores = np.clip(segments.scores, -_LARGEST, _LARGEST)
        return cls(scores, targets, segments.counts, node, len(segments))

    def slopes(self, group: IntArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """Slope of each group of nodes without intercept, under a normal prior."""
        rows = self._replace(node=group[self.node], n_nodes=len(mean))
        prior = np.stack(
            [1 / np.broadcast_to(deviation, mean.shape) ** 2, 0 * mean, np.full(len(mean), 1e12)]
        )
        slopes, _ = rows.minimum(np.stack([mean, np.zeros(len(mean))]), prior)
        return np.asarray(np.maximum(slopes, 1e-3))

    def _sums(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.node, self.weights * values, self.n_nodes).astype(np.float64)

    def losses(self, theta: FloatArray) -> FloatArray:
        """Negative log-likelihood of each node."""
        z = theta[0][self.node] * self.scores + theta[1][self.node]
        return self._sums(np.logaddexp(0.0, z) - self.targets * z)

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss (n_nodes,), its gradient (2, n_nodes) and second derivatives (3, n_nodes): aa, ab, bb."""
        z = theta[0][self.node] * self.scores + theta[1][self.node]
        p, s = expit(z), self.scores
        error, q = p - self.targets, p * (1 - p)
        gradient = np.stack([self._sums(error * s), self._sums(error)])
        curvature = np.stack([self._sums(q * s * s), self._sums(q * s), self._sums(q)])
        return self._sums(np.logaddexp(0.0, z) - self.targets * z), gradient, curvature

    def minimum(self, mean: FloatArray, prior: FloatArray) -> FloatArray:
        """Slopes and intercepts (2, n_nodes) with the highest posterior, by Newton's method from `mean`.

        Parameters
        ----------
        mean : (2, n_nodes)
        prior : (3, n_nodes) or (3, 1)
            Precision: entries aa, ab and bb.
        """

        def penalty(theta: FloatArray) -> FloatArray:
            d, e = theta - mean
            return np.asarray(prior[0] * d * d + 2 * prior[1] * d * e + prior[2] * e * e) / 2

        theta = mean.copy()
        for _ in range(_MAX_ITER):
            loss, gradient, curvature = self.derivatives(theta)
            loss = loss + penalty(theta)
            d, e = theta - mean
            g_a = gradient[0] + prior[0] * d + prior[1] * e
            g_b = gradient[1] + prior[1] * d + prior[2] * e
            aa, ab, bb = curvature + prior
            step = np.stack([bb * g_a - ab * g_b, aa * g_b - ab * g_a]) / (aa * bb - ab * ab)
            decrease = step[0] * g_a + step[1] * g_b
            active = decrease > _TOL * (1 + np.abs(loss))
            step[:, ~active] = 0.0
            for _ in range(_MAX_HALVINGS):
                worse = self.losses(theta - step) + penalty(theta - step) > loss
                if not worse.any():
                    break
                step[:, worse] /= 2
            theta -= step
            if not active.any():
                break
        return theta
