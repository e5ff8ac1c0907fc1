"""Trees of calibrators: Platt scaling at the leaves of a small decision tree."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.utils.validation import check_array, check_is_fitted

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._common.validation import as_given, to_host
from dichotomies._kernels.score_maps import LARGEST, LINES, Knots
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator, both_sides, checked_scores
from dichotomies.calibrators.binary.platt import EQUAL, PlattScaling
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.persistence.checks import Array, Part, Size, declares, expect
from dichotomies.rows.segments import Segments, bounded

_DEEPEST = 5  # 63 nodes

#: Slope and intercept.
Line: TypeAlias = tuple[float, float]


@declares(
    maps_=Part(ScoreMaps, n_maps="n_nodes"),
    n_features_=Size("n_features", 0),
    feature_=Array("integer", "n_nodes"),
    threshold_=Array("float", "n_nodes"),
    left_=Array("integer", "n_nodes", within=(0, "n_nodes")),
)
@BINARY.register("tree")
class CalibrationTree(BinaryCalibrator):
    """Calibration tree: Platt scaling at the leaves of a tree over the features or, without any, the score.

    Different regions of the features may need different corrections. Given features `X`, the tree splits by
    them, as in the paper. The nodes of a nested dichotomy calibrate scores alone; there, and without `X`,
    the tree splits by the score itself, so that the log-odds are a straight line in each of several
    ranges of scores. They may fall from one leaf to the next.

    The paper grows a logistic model tree and prunes it by cross-validation. This tree is grown top-down:
    among all features and thresholds, the split with the largest gain in likelihood by one Newton step from
    the node's own line (a score test) is tried, both sides are fitted, and the split stays if the
    log-likelihood increases by more than BIC's price, ``1.5 log n + log n_features``. Without such a
    split the tree is `PlattScaling`.

    Parameters
    ----------
    max_depth : int
        Maximum depth of the tree; at most 5.
    min_weight_leaf : float
        Minimum weight of the rows, their number if unweighted, on each side of a split.

    Attributes
    ----------
    feature_, threshold_, left_ : arrays of shape (n_nodes,)
        The tree over `X`: node k sends rows with ``X[:, feature_[k]] <= threshold_[k]`` to node ``left_[k]``
        and the others to the next one; -1 is the feature of a leaf. One leaf if fitted without `X`.
    n_features_ : int
        Number of columns of `X`; 0 if fitted without.
    maps_ : ScoreMaps of length n_nodes
        The map of each node.

    References
    ----------
    Leathart, Frank, Holmes & Pfahringer, *Probability calibration trees*, ACML 2017.

    Examples
    --------
    Scores that are right for one half of the rows and reversed for the other:

    >>> import numpy as np
    >>> from dichotomies.calibrators.binary import CalibrationTree
    >>> rng = np.random.default_rng(0)
    >>> X, scores = rng.random((2000, 3)), rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(np.where(X[:, 1] > 0.5, -scores, scores)))
    >>> tree = CalibrationTree().fit(scores, y, X=X)
    >>> tree.feature_[0], tree.threshold_[0].round(1)
    (np.int64(1), np.float64(0.5))
    >>> tree.predict_log_odds([2.0, 2.0], X=[[0.5, 0.2, 0.5], [0.5, 0.9, 0.5]]).round(1)
    array([-2. ,  1.8])
    """

    is_monotone: ClassVar[bool] = False

    def __init__(self, max_depth: int = 5, min_weight_leaf: float = 15.0) -> None:
        self.max_depth = max_depth
        self.min_weight_leaf = min_weight_leaf

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once, each by a tree over its scores; see `BinaryCalibrator`."""
        segments = segments.take(segments.row_weights > 0)
        scores, targets, weights, offsets = segments.arrays
        own = [slice(a, b) for a, b in pairwise(offsets.tolist())]
        trees = self._grow([_Rows(scores[k, None], scores[k], targets[k], weights[k]) for k in own])
        leaves = [list(_leaves(tree, 0, -LARGEST)) for tree in trees]
        sizes = np.cumsum([0, *(2 * len(each) for each in leaves)])
        starts = np.repeat([start for each in leaves for start, _ in each], 2)
        lines = np.array([line for each in leaves for _, line in each]).ravel()
        return ScoreMaps.knots(LINES, Knots(sizes, starts, lines), "tree")

    def fit(
        self,
        scores: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        X: npt.ArrayLike | None = None,
    ) -> Self:
        """Calibrate one scorer; see `BinaryCalibrator`.

        Parameters
        ----------
        scores, y, sample_weight
            As of every binary calibrator.
        X : array of shape (n, n_features), optional
            Finite features of the rows, by which the tree splits; without them it splits by the score.

        Returns
        -------
        self
        """
        if X is None:
            super().fit(scores, y, sample_weight)
            self.n_features_ = 0
            self.feature_, self.threshold_, self.left_ = np.array([-1]), np.zeros(1), np.zeros(1, np.intp)
            return self
        rows = self._read(scores, y, sample_weight)
        features, kept = _checked_features(X, len(rows.scores)), rows.row_weights > 0
        rows = rows.take(kept)
        [tree] = self._grow([_Rows(features[kept], rows.scores, rows.targets, rows.counts)])
        self.n_features_ = features.shape[1]
        lines, *splits = zip(*tree, strict=True)
        self.feature_, self.threshold_, self.left_ = map(np.array, splits)
        self.maps_ = ScoreMaps.affine(np.array([[*line, 0.0] for line in lines]), "tree")
        return self

    def _grow(self, parts: list[_Rows]) -> list[list[_Node]]:
        """Grow a tree over each part's features, all trees level by level.

        A split stays if it lowers the negative log-likelihood by more than ``1.5 log(n) + log(n_features)``,
        n being the node's weight: BIC's price for a threshold and two more parameters, and for the choice of
        the feature.
        """
        self._check()
        trees = [
            [_Node(line)] if len(part.scores) else [] for line, part in zip(_lines(parts), parts, strict=True)
        ]
        level = [(tree, 0, rows) for tree, rows in zip(trees, parts, strict=True) if tree]
        for _ in range(self.max_depth):
            splits = [rows.split(tree[k].line, self.min_weight_leaf) for tree, k, rows in level]
            tried = [(*each, split) for each, split in zip(level, splits, strict=True) if split]
            lines = _lines([side for *_, (_, _, sides) in tried for side in sides])
            level = []
            for (tree, k, rows, split), *pair in zip(tried, lines[::2], lines[1::2], strict=True):
                feature, threshold, sides = split
                saved = rows.nll(tree[k].line) - sum(map(_Rows.nll, sides, pair))
                if saved > 1.5 * np.log(rows.weights.sum()) + np.log(rows.X.shape[1]):
                    tree[k] = _Node(tree[k].line, feature, threshold, len(tree))
                    level += [(tree, len(tree) + i, side) for i, side in enumerate(sides)]
                    tree += map(_Node, pair)
        return trees

    def predict_log_odds(self, scores: npt.ArrayLike, X: npt.ArrayLike | None = None) -> FloatArray:
        """Return the log-odds (n,) of the positive label, given `scores`, and `X` if fitted with it."""
        check_is_fitted(self, "maps_")
        if (X is not None) != (self.n_features_ > 0):
            was = f"with {self.n_features_} features" if self.n_features_ else "without features"
            raise ValueError(f"The tree was fitted {was}: give predictions the same X as fit, or none.")
        if X is None:
            return super().predict_log_odds(scores)
        flat = checked_scores(scores)
        node = self._leaf_of(_checked_features(X, len(flat), self.n_features_))
        slope, intercept, _ = self.maps_.parameters[node].T
        with np.errstate(over="ignore"):
            log_odds: FloatArray = np.clip(slope * bounded(flat) + intercept, -LARGEST, LARGEST)
        return as_given(log_odds, scores)

    def predict_proba(self, scores: npt.ArrayLike, X: npt.ArrayLike | None = None) -> FloatArray:
        """Return probabilities (n, 2) of both labels, given `scores`, and `X` if fitted with it."""
        return both_sides(self.predict_log_odds(scores, X))

    def _leaf_of(self, X: FloatArray) -> IntArray:
        """Return the leaf (n,) of every row."""
        node = np.zeros(len(X), np.intp)
        while (inner := self.feature_[node] >= 0).any():
            own = node[inner]
            node[inner] = self.left_[own] + (X[inner, self.feature_[own]] > self.threshold_[own])
        return node

    def _check(self) -> None:
        if not 0 <= self.max_depth <= _DEEPEST:
            raise ValueError(f"max_depth must be from 0 to {_DEEPEST}; got {self.max_depth}.")
        if not self.min_weight_leaf > 0:
            raise ValueError(f"min_weight_leaf must be positive; got {self.min_weight_leaf}.")

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise if a node's children do not come after it; `names` as in `dichotomies.persistence.checks`."""
        inner = np.flatnonzero(self.feature_ >= 0)
        expect((self.left_[inner] > inner).all(), "children come after their parents")
        expect((self.left_[inner] + 1 < names["n_nodes"]).all(), "nodes have two children")
        expect((self.feature_ < names["n_features"]).all(), "trees split by features that there are")


def _checked_features(X: npt.ArrayLike, n_rows: int, n_features: int | None = None) -> FloatArray:
    """Return the features as a contiguous array of finite numbers, of the expected shape."""
    features: FloatArray = check_array(to_host(X), dtype=np.float64, order="C", input_name="X")
    if len(features) != n_rows or n_features not in (None, features.shape[1]):
        wanted = f"({n_rows}, {'n_features' if n_features is None else n_features})"
        raise ValueError(f"X must have a row for each score, of shape {wanted}; got shape {features.shape}.")
    return features


class _Node(NamedTuple):
    """A node: slope and intercept there, and the split with the number of its left child."""

    line: Line
    feature: int = -1
    threshold: float = 0.0
    left: int = 0


class _Rows(NamedTuple):
    """Features, scores, targets and weights of some rows."""

    X: FloatArray
    scores: FloatArray
    targets: BoolArray
    weights: FloatArray

    def take(self, rows: BoolArray) -> _Rows:
        return _Rows(self.X[rows], self.scores[rows], self.targets[rows], self.weights[rows])

    def nll(self, line: Line) -> float:
        """Negative log-likelihood of log-odds on a line."""
        z = line[0] * self.scores + line[1]
        return float(self.weights @ np.logaddexp(0.0, np.where(self.targets, -z, z)))

    def terms(self, line: Line) -> FloatArray:
        """Weight (1), gradient (2) and curvature (3) of the likelihood by intercept and slope: (n, 6).

        For scores of mean 0 and spread 1, and the targets of Platt scaling.
        """
        w, positive = self.weights, self.weights[self.targets].sum()
        target = np.where(self.targets, (positive + 1) / (positive + 2), 1 / (w.sum() - positive + 2))
        mean = w @ self.scores / w.sum()
        u = self.scores - mean
        spread = np.sqrt(w @ (u * u) / w.sum())
        u = u / spread if spread > EQUAL * np.abs(self.scores).max() else np.zeros_like(u)
        p = expit(line[0] * self.scores + line[1])
        residual, curve = w * (target - p), w * p * (1 - p)
        return np.column_stack([w, residual, residual * u, curve, curve * u, curve * u * u])

    def split(self, line: Line, least: float) -> tuple[int, float, tuple[_Rows, _Rows]] | None:
        """Feature, threshold and sides of the split with the largest gain by one Newton step, if any."""
        terms, feature, threshold, most = self.terms(line), -1, 0.0, 0.0
        for j, values in enumerate(self.X.T):
            order = np.argsort(values, kind="stable")
            ordered, left = values[order], np.cumsum(terms[order], axis=0)
            left, right = left[:-1], left[-1] - left[:-1]
            allowed = (ordered[1:] > ordered[:-1]) & (left[:, 0] >= least) & (right[:, 0] >= least)
            gain = np.where(allowed, _newton_gain(left.T) + _newton_gain(right.T), 0.0)
            if gain.max(initial=0.0) > most:
                at = int(gain.argmax())
                most, feature = gain[at], j
                middle = 0.5 * ordered[at] + 0.5 * ordered[at + 1]
                threshold = float(middle if middle < ordered[at + 1] else ordered[at])
        if feature < 0:
            return None
        is_left = self.X[:, feature] <= threshold
        return feature, threshold, (self.take(is_left), self.take(~is_left))


def _newton_gain(terms: FloatArray) -> FloatArray:
    """Gain in log-likelihood by one Newton step with a standard normal prior: ``s' (h + 1)^-1 s / 2``."""
    _, s0, s1, h00, h01, h11 = terms
    h00, h11 = h00 + 1.0, h11 + 1.0
    return np.asarray(0.5 * (h11 * s0 * s0 - 2.0 * h01 * s0 * s1 + h00 * s1 * s1) / (h00 * h11 - h01 * h01))


def _lines(parts: list[_Rows]) -> list[Line]:
    """Slope and intercept of Platt scaling of each part."""
    if not parts:
        return []
    offsets = np.cumsum([0, *(len(part.scores) for part in parts)])
    scores, targets, weights = (np.concatenate(each) for each in list(zip(*parts, strict=True))[1:])
    maps = PlattScaling().fit_segments(Segments(scores, targets, offsets, weights))
    return [(float(slope), float(intercept)) for slope, intercept, _ in maps.parameters]


def _leaves(tree: list[_Node], k: int, start: float) -> Iterator[tuple[float, Line]]:
    """First score and line of each leaf below node `k` of a tree over scores, which begins at `start`."""
    if tree and tree[k].feature < 0:
        yield start, tree[k].line
    elif tree:
        yield from _leaves(tree, tree[k].left, start)
        yield from _leaves(tree, tree[k].left + 1, float(np.nextafter(tree[k].threshold, np.inf)))
