"""Trees of calibrators: Platt scaling at the leaves of a small decision tree."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_is_fitted

from dichotomies._common.array_api import as_given
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._common.validation import to_host
from dichotomies._kernels.calibration_tree import Limits, grow, grow_on_scores
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.platt import fit_affine, plain_seconds
from dichotomies._kernels.score_maps import LARGEST, LINES
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator, both_sides, checked_scores
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.persistence.checks import Array, Part, Size, declares, expect
from dichotomies.rows.segments import Segments, bounded

_DEEPEST = 5  # 63 nodes


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
        small = is_small(segments.longest, 4 * plain_seconds(len(segments.scores), len(segments)))
        knots = grow_on_scores(segments.arrays, self._limits(), fit_affine.when(small))
        return ScoreMaps.knots(LINES, knots, "tree")

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
        features = _checked_features(X, len(rows.scores))
        self.n_features_ = features.shape[1]
        return self._grow(features, rows)

    def _grow(self, X: FloatArray, rows: Segments) -> Self:
        """Grow the tree over `X` with one segment of rows."""
        weighted = rows.row_weights > 0
        rows, X = rows.take(weighted), X[weighted]
        small = is_small(len(X), 4 * plain_seconds(len(X), 1))
        tree = grow(X, rows.arrays, self._limits(), fit_affine.when(small))
        self.feature_, self.threshold_, self.left_ = tree.feature, tree.threshold, tree.left
        self.maps_ = ScoreMaps.affine(np.column_stack([tree.lines, np.zeros(len(tree.lines))]), "tree")
        return self

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

    def _limits(self) -> Limits:
        """Return the validated parameters."""
        if not 0 <= self.max_depth <= _DEEPEST:
            raise ValueError(f"max_depth must be from 0 to {_DEEPEST}; got {self.max_depth}.")
        if not self.min_weight_leaf > 0:
            raise ValueError(f"min_weight_leaf must be positive; got {self.min_weight_leaf}.")
        return Limits(int(self.max_depth), float(self.min_weight_leaf))

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
