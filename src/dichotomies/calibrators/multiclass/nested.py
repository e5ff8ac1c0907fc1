"""Calibration through a nested dichotomy: the log-odds at the nodes of a tree over the classes."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.composition import class_log_proba, implied_log_odds
from dichotomies.calibrators.binary.shrunk import Widths, shrunk_platt
from dichotomies.calibrators.multiclass._calibration_rows import (
    LOWEST,
    CalibrationRows,
    normalise,
    row_blocks,
)
from dichotomies.calibrators.multiclass._class_tree import class_tree
from dichotomies.calibrators.multiclass._folds import balanced_folds
from dichotomies.calibrators.multiclass._likelihood import Likelihood, best_scale
from dichotomies.calibrators.multiclass._noise import best_noise, mix
from dichotomies.calibrators.multiclass._scaling import Hyperprior
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator
from dichotomies.calibrators.multiclass.vector import VectorScaling
from dichotomies.persistence.checks import Array, Part, declares
from dichotomies.rows import NodeTask, Rows
from dichotomies.tree import ClassTree

#: After temperature scaling the slopes are near 1, and nodes differ little unless the rows say otherwise.
_WIDTHS = Widths(0.3, 0.1, Hyperprior(expected=(0.03, 0.1), largest=(3.0, 3.0)))
#: Rows that are imagined to be no noise, so that a few rows do not suggest any.
_ORDINARY_ROWS = 20
_BLOCK_BYTES = 2**22
#: Folds of vector scaling, and rows times classes up to which it is refitted in full without each.
_FOLDS, _REFITTED_IN_FULL = 5, 2**19


@declares(tree_=Part(ClassTree, "n_classes"), slope_=Array("float", (1, "n_classes", -1)))
@MULTICLASS.register("nested")
class NestedCalibration(MulticlassCalibrator):
    """Nested calibration: the log-odds at every node of a tree over the classes, each calibrated by itself.

    The class probabilities of any model imply log-odds s at the nodes of any tree: of the sum over the
    classes on a node's left against the sum over those on its right. They become ``a s + b``, and the
    calibrated probability of a class is again the product along its path. Slopes and intercepts are shrunk:
    the a to one slope per depth, these to a common one, and that to 1; the b to 0. How strongly is chosen by
    marginal likelihood, so that few rows change little. With two classes this is shrunken Platt scaling.

    Before that the log-probabilities are scaled by one temperature, and mixed with the share of rows that
    they say nothing about, ``(1 - e) p + e / k``, so that a probability of 0 has log-odds, too.

    The tree is grown from the calibration rows unless it is given. It sees mostly the probabilities, and
    labels where classes have many rows.

    Parameters
    ----------
    tree : ClassTree, default=None
        A tree over as many classes, the i-th of ``tree.classes`` for column i; None to grow one.

    Attributes
    ----------
    tree_ : ClassTree
        The tree over the columns.
    slope_, bias_ : ndarray of shape (n_classes - 1,)
        a and b of each node.
    scale_ : float
        One divided by the temperature.
    noise_ : float
        The share e.

    References
    ----------
    Leathart, Frank, Pfahringer & Holmes, *On the Calibration of Nested Dichotomies for Large Multiclass
    Tasks*, for the calibration of nodes.

    Examples
    --------
    Classes 0 and 1 are confused with each other more than the model says, and never with class 2.

    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(np.repeat([[0.8, 0.15, 0.05], [0.05, 0.05, 0.9]], 500, axis=0))
    >>> y = np.r_[rng.random(500) < 0.4, np.full(500, 2)]
    >>> calibrator = MULTICLASS.create("nested").fit(log_proba, y)
    >>> calibrator.tree_
    ClassTree.from_nested([2, [0, 1]])
    >>> calibrator.predict_proba(log_proba[[0, -1]]).round(2)
    array([[0.65, 0.35, 0.  ],
           [0.  , 0.  , 0.99]])
    """

    block_bytes = _BLOCK_BYTES  # many, for levels of the tree at a time

    def __init__(self, *, tree: ClassTree | None = None) -> None:
        self.tree = tree

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit temperature and noise, grow the tree, and calibrate its nodes."""
        likelihood = Likelihood(rows)
        n_classes = self.n_classes_
        self.scale_ = best_scale(likelihood, tol=1e-6).scale
        own = likelihood.own_log_proba(np.full(n_classes, self.scale_), np.zeros(n_classes))
        self.noise_ = best_noise(own, rows.weight, n_classes, (0, _ORDINARY_ROWS)).share
        self.tree_ = class_tree(rows, self.scale_) if self.tree is None else self._over_columns(self.tree)
        self.slope_, self.bias_ = shrunk_platt(self._task(rows).segments(self._own_log_odds(rows)), _WIDTHS)

    def grown_tree(self) -> ClassTree:
        """Return the tree over the columns."""
        return self.tree_

    def _over_columns(self, tree: ClassTree) -> ClassTree:
        if tree.n_classes != self.n_classes_:
            raise ValueError(
                f"The tree has {tree.n_classes} classes and log_proba {self.n_classes_} columns: "
                "they must be as many."
            )
        return ClassTree(tree.leaf_order, tree.split_depth, np.arange(tree.n_classes))

    def _task(self, rows: CalibrationRows) -> NodeTask:
        return NodeTask(Rows(None, rows.codes, np.arange(self.n_classes_), rows.weight), self.tree_)

    def _own_log_odds(self, rows: CalibrationRows) -> FloatArray:
        """Return the log-odds of every node's own rows, in the order of `NodeTask.own_pairs`."""
        task = self._task(rows)
        out = np.empty(int(task.node_size.sum()))
        first_pair = np.cumsum(task.node_size) - task.node_size - task.leaf_offset[task.start]
        place = np.argsort(task.row_order)
        for part in row_blocks(*rows.shape, n_bytes=_BLOCK_BYTES):
            log_odds, leaf = self._log_odds(rows.block(part)), task.leaf_of_row[part, None]
            row, node = np.nonzero((task.start <= leaf) & (leaf < task.stop))
            out[first_pair[node] + place[part][row]] = log_odds[row, node]
        return out

    def _log_odds(self, x: FloatArray) -> FloatArray:
        """Return the log-odds at all nodes before their calibration; `x` is overwritten."""
        x *= self.scale_
        if self.noise_:
            mix(normalise(x), self.noise_)
        return implied_log_odds(self.tree_, x)

    def scores(self, x: FloatArray) -> FloatArray:
        """Return the sums of log-probabilities along the path of each class."""
        log_odds = self._log_odds(x)
        log_odds *= self.slope_
        log_odds += self.bias_
        return class_log_proba(self.tree_, log_odds, x)


@MULTICLASS.register("vector-nested")
class VectorNestedCalibration(MulticlassCalibrator):
    """Vector scaling, then nested calibration: biases of classes first, then confusions within families.

    Nested calibration is fitted to rows as vector scaling leaves those that it was not fitted to: each row is
    scaled without its fold.

    Parameters
    ----------
    tree : ClassTree, default=None
        See `NestedCalibration`.

    Attributes
    ----------
    vector_ : VectorScaling
        Fitted to all rows.
    nested_ : NestedCalibration
        Fitted to the out-of-fold output of vector scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(rng.dirichlet([1, 1, 1], size=500))
    >>> y = np.array([rng.choice(3, p=p) for p in np.exp(log_proba)])
    >>> calibrator = MULTICLASS.create("vector-nested").fit(3 * log_proba, y)
    >>> bool(abs(calibrator.predict_proba(3 * log_proba) - np.exp(log_proba)).mean() < 0.02)
    True
    """

    block_bytes = _BLOCK_BYTES

    def __init__(self, *, tree: ClassTree | None = None) -> None:
        self.tree = tree

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit vector scaling, and nested calibration behind it."""
        self.vector_ = VectorScaling()
        self.vector_.fit_on(rows)
        fold = balanced_folds(rows, _FOLDS)
        scaled = self.vector_.out_of_fold(rows, fold, in_full=rows.raw.size <= _REFITTED_IN_FULL)
        self.nested_ = NestedCalibration(tree=self.tree)
        self.nested_.fit_on(CalibrationRows.read(scaled, rows.codes, rows.weight))
        self.n_iter_, self.converged_ = self.vector_.n_iter_, self.vector_.converged_

    def grown_tree(self) -> ClassTree:
        """Return the tree of the nested calibration."""
        return self.nested_.tree_

    def scores(self, x: FloatArray) -> FloatArray:
        """Return the scores of nested calibration, given those of vector scaling."""
        return self.nested_.scores(np.maximum(normalise(self.vector_.scores(x)), LOWEST, out=x))
