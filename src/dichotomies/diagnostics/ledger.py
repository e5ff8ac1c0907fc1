"""The ledger: decomposition of the NLL over the nodes of the tree (Proposition 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies.calibrators.binary import BINARY, Segments, cross_fitted_log_odds, row_nll
from dichotomies.diagnostics.evaluated_model import DiagnosticTable, EvaluatedModel, node_scores
from dichotomies.inference.scorers import MOST_LOG_ODDS
from dichotomies.metrics.binning import sums_by_index
from dichotomies.tree import ClassTree


@dataclass(frozen=True)
class Ledger:
    """The NLL of a tree by node; made by `ledger`.

    All amounts are parts of the *mean* NLL, in nats: they add up over nodes, depths or subtrees.

    Attributes
    ----------
    tree : ClassTree
        The tree.
    nll : ndarray of shape (n_nodes,)
        Contribution of each node: its binary NLL summed over its own rows, divided by the weight of all rows.
        No change of the node alone can gain more than this.
    raw_nll : ndarray of shape (n_nodes,) or None
        The same before internal calibration; None without it.
    recoverable : ndarray of shape (n_nodes,)
        Part of `nll` that recalibrating the node alone on these rows would gain, estimated by cross-fitting
        the calibrator "auto"; the rest takes a better learner, or another split.
    rows : ndarray of shape (n_nodes,)
        The weight of each node's own rows: those whose class lies below it.
    class_rows : ndarray of shape (n_classes,)
        The weight of the rows of each class, by leaf position from left to right.
    mean_square : ndarray of shape (n_nodes,)
        Like `nll`, but of squared losses, for standard errors.
    final_nll : float
        The mean NLL of `predict_proba`, that is, after external calibration.
    n_effective : float
        Effective sample size: the number of rows of equal weight with the same standard errors.
    """

    tree: ClassTree
    nll: FloatArray
    raw_nll: FloatArray | None
    recoverable: FloatArray
    rows: FloatArray
    class_rows: FloatArray
    mean_square: FloatArray
    final_nll: float
    n_effective: float

    @property
    def depth(self) -> IntArray:
        """Depth of each node; the root's is 0."""
        return self.tree.depth

    @property
    def n_classes(self) -> IntArray:
        """Number of classes below each node."""
        return self.tree.stop - self.tree.start

    @property
    def total(self) -> float:
        """The mean NLL of the composed tree, before external calibration: the sum over all nodes."""
        return float(self.nll.sum())

    @property
    def raw_total(self) -> float | None:
        """The mean NLL of the tree before internal calibration; None without it."""
        return None if self.raw_nll is None else float(self.raw_nll.sum())

    @property
    def external_gain(self) -> float:
        """Reduction of the mean NLL by external calibration."""
        return self.total - self.final_nll

    @property
    def internal_gain(self) -> FloatArray | None:
        """Reduction of each node's NLL by internal calibration; None without it."""
        return None if self.raw_nll is None else self.raw_nll - self.nll

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of each node's NLL, from the variance over its rows."""
        return self._error(self.mean_square, self.nll)

    def _error(self, mean_square: FloatArray, mean: FloatArray) -> FloatArray:
        error: FloatArray = np.sqrt(np.maximum(mean_square - mean**2, 0) / self.n_effective)
        return error

    # ------------------------------------------------------------------ tables

    def by_node(self) -> DiagnosticTable:
        """Return a table with one row per node, in level order, with the NLL per row that reaches it."""
        return self._table({"node": np.arange(self.tree.n_nodes), "depth": self.depth}, self._amounts())

    def by_depth(self) -> DiagnosticTable:
        """Return a table with one row per depth: the sums over its nodes."""
        n_depths = int(self.depth[-1]) + 1
        amounts = self._amounts()
        sums = {name: sums_by_index(self.depth, each, n_depths) for name, each in amounts.items()}
        lead = {"depth": np.arange(n_depths), "n_nodes": np.bincount(self.depth)}
        # a row reaches at most one node of a depth
        squares = sums_by_index(self.depth, self.mean_square, n_depths)
        error = self._error(squares, sums["nll"])
        return DiagnosticTable({**self._table(lead, sums).columns, "standard_error": error})

    def by_subtree(self) -> DiagnosticTable:
        """Return a table with one row per node: the sums over its subtree."""
        amounts = self._amounts()
        sums = np.column_stack([amounts[name] for name in amounts if name != "rows"])
        for node in range(self.tree.n_nodes - 1, 0, -1):  # level order: children before their parents
            sums[self.tree.parent[node]] += sums[node]
        names = [name for name in amounts if name != "rows"]
        summed = {"rows": self.rows, **dict(zip(names, sums.T, strict=True))}
        lead = {"node": np.arange(self.tree.n_nodes), "depth": self.depth, "n_classes": self.n_classes}
        return self._table(lead, summed)

    def next_nat(self, top: int = 10, by: str = "nll") -> DiagnosticTable:
        """Return the nodes with the largest potential for improvement.

        Parameters
        ----------
        top : int
            Number of nodes.
        by : {"nll", "recoverable", "nll_per_row"}
            Ranking criterion: gain of a perfect node, gain of recalibrating the node, or mean loss of its
            own rows.

        Returns
        -------
        DiagnosticTable
            The columns of `by_node`, the number of classes on either side of the node, and its fraction of
            the total.
        """
        table = self.by_node()
        if by not in ("nll", "recoverable", "nll_per_row"):
            raise ValueError(f"Nodes are ordered by 'nll', 'recoverable' or 'nll_per_row', not by {by!r}.")
        sides = {"n_left": self.tree.split - self.tree.start, "n_right": self.tree.stop - self.tree.split}
        share = self.nll / self.total if self.total > 0 else np.zeros_like(self.nll)
        return DiagnosticTable({**table.columns, **sides, "share": share}).top(top, by=by)

    def _amounts(self) -> dict[str, FloatArray]:
        amounts = {"rows": self.rows, "nll": self.nll, "recoverable": self.recoverable}
        if self.raw_nll is not None:
            amounts |= {"raw_nll": self.raw_nll, "internal_gain": self.raw_nll - self.nll}
        return amounts

    def _table(self, lead: dict[str, Any], amounts: dict[str, FloatArray]) -> DiagnosticTable:
        per_row = np.zeros_like(amounts["nll"])
        np.divide(
            amounts["nll"] * self.class_rows.sum(), amounts["rows"], out=per_row, where=amounts["rows"] > 0
        )
        return DiagnosticTable({**lead, **amounts, "nll_per_row": per_row})


def ledger(clf: Any, X: Matrix, y: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None) -> Ledger:
    """Decompose the mean NLL of a fitted nested dichotomy over its nodes.

    A row's NLL is the sum of the binary NLLs of the nodes on the path to its class (Proposition 1), so the
    mean NLL is a sum over nodes, in which node k has weight n_k / n.

    Parameters
    ----------
    clf : fitted NestedDichotomyClassifier, or a pipeline that ends in one
    X : array, CSR matrix or data frame of shape (n_rows, n_features)
        Held-out rows.
    y : array of shape (n_rows,)
        Their labels, all of them known to the classifier.
    sample_weight : array of shape (n_rows,), optional
        Weight of each row.

    Returns
    -------
    Ledger

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.diagnostics import ledger
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(GaussianNB(var_smoothing=1e-3), internal_calibration="isotonic",
    ...                                 structure="class-balanced", random_state=0).fit(X[:1000], y[:1000])
    >>> book = ledger(clf, X[1000:], y[1000:])
    >>> bool(abs(book.by_depth()["nll"].sum() - book.total) < 1e-12)
    True
    >>> bool(book.internal_gain.sum() > 1)  # calibrating the nodes saved more than a nat
    True
    """
    evaluated = EvaluatedModel.of(clf, X, y, sample_weight)
    scores = node_scores(evaluated)
    nodes, weight = scores.log_odds, evaluated.weight
    total_weight = weight.sum()
    losses = row_nll(nodes.scores, nodes)
    nll = nodes.sums(losses) / total_weight
    raw_nll = None if scores.raw is None else _nll(scores.raw) / total_weight
    final = scores.final_nll
    return Ledger(
        tree=evaluated.tree,
        nll=nll,
        raw_nll=raw_nll,
        recoverable=_recoverable(nodes) / total_weight,
        rows=nodes.sums(np.ones(len(losses))),
        class_rows=sums_by_index(evaluated.leaf_of_row, weight, evaluated.tree.n_classes),
        mean_square=nodes.sums(losses**2) / total_weight,
        final_nll=float(nll.sum()) if final is None else float(weight @ final / total_weight),
        n_effective=float(total_weight**2 / (weight @ weight)),
    )


def _nll(nodes: Segments) -> FloatArray:
    return nodes.sums(row_nll(nodes.scores, nodes))


def _recoverable(nodes: Segments) -> FloatArray:
    """Estimate the gain of recalibrating each node by cross-fitting; 0 if it is negative."""
    bounded = np.clip(nodes.scores, -MOST_LOG_ODDS, MOST_LOG_ODDS)
    clipped = Segments(bounded, nodes.targets, nodes.offsets, nodes.weights)
    recalibrated = row_nll(cross_fitted_log_odds(BINARY.create("auto"), clipped), clipped)
    gain: FloatArray = nodes.sums(row_nll(nodes.scores, nodes) - recalibrated)
    return np.maximum(gain, 0.0)
