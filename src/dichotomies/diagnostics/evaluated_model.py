"""A fitted model with the rows it is evaluated on, and the scores of its nodes for their own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.chunks import chunk_rows, for_each_chunk, row_slices
from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies._common.validation import row_weights
from dichotomies._kernels.composition import class_log_proba
from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import AveragedScorer, CalibratedScorer, GivenScores, averaged
from dichotomies.learners import Scorer
from dichotomies.metrics._input import class_codes
from dichotomies.rows import NodeTask, Rows, Segments
from dichotomies.tree import ClassTree

_SHOWN_ROWS = 20


@dataclass(frozen=True, repr=False)
class DiagnosticTable:
    """Named columns of equal length.

    Parameters
    ----------
    columns : mapping of str to array
        The columns by name.

    Examples
    --------
    >>> from dichotomies.diagnostics import DiagnosticTable
    >>> table = DiagnosticTable({"depth": [0, 1], "nll": [0.25, 0.5]})
    >>> table
    depth     nll
        0  0.2500
        1  0.5000
    >>> table["nll"].sum()
    np.float64(0.75)
    """

    columns: Mapping[str, npt.NDArray[Any]]

    def __post_init__(self) -> None:
        columns = {name: np.asarray(values) for name, values in self.columns.items()}
        object.__setattr__(self, "columns", columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over rows as dictionaries of plain Python values."""
        values = [column.tolist() for column in self.columns.values()]
        for row in zip(*values, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def top(self, n: int, by: str) -> DiagnosticTable:
        """Return the `n` rows with the largest values of the column `by`, largest first."""
        order = np.argsort(-self[by], kind="stable")[:n]
        return DiagnosticTable({name: column[order] for name, column in self.columns.items()})

    def to_pandas(self) -> Any:
        """Convert to a pandas data frame."""
        return _frame_class("pandas")(dict(self.columns))

    def to_polars(self) -> Any:
        """Convert to a polars data frame."""
        return _frame_class("polars")(dict(self.columns))

    def __repr__(self) -> str:
        shown = [
            [name, *map(_as_text, column[:_SHOWN_ROWS].tolist())] for name, column in self.columns.items()
        ]
        widths = [max(map(len, cells)) for cells in shown]
        lines = ["  ".join(map(str.rjust, cells, widths)) for cells in zip(*shown, strict=True)]
        if len(self) > _SHOWN_ROWS:
            lines.append(f"... {len(self)} rows in all")
        return "\n".join(lines)


def _as_text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _frame_class(library: str) -> Any:
    try:
        return import_module(library).DataFrame
    except ImportError as error:
        raise ImportError(
            f"to_{library}() needs {library}: pip install {library}. The columns are plain arrays and can be "
            "used without it."
        ) from error


#: Number of chunks whose results are held before they are summed in row order.
_CHUNKS_HELD = 16


@dataclass(frozen=True, eq=False)
class EvaluatedModel:
    """The fitted model of a nested dichotomy, and labelled rows to evaluate it on."""

    model: FittedForest
    rows: Rows
    n_jobs: int | None

    @classmethod
    def of(cls, clf: Any, X: Matrix, y: npt.ArrayLike, sample_weight: Any = None) -> EvaluatedModel:
        """Take the model of a fitted classifier, and check the rows."""
        clf, X = tree_classifier(clf, X)
        codes = codes_of(y, clf.classes_, X.shape[0])
        rows = Rows(X, codes, clf.classes_, row_weights(sample_weight, len(codes)))
        return cls(clf.model_, rows, clf.n_jobs)

    @property
    def tree(self) -> ClassTree:
        """The tree along which the NLL is decomposed."""
        return self.model.tree

    @cached_property
    def scorer(self) -> Scorer:
        """Log-odds at the nodes of `tree` before external calibration."""
        return self.model.node_scorer

    @property
    def external(self) -> MulticlassCalibrator | None:
        """The external calibrator."""
        return self.model.external

    @property
    def weight(self) -> FloatArray:
        """Weight of each row."""
        assert self.rows.weight is not None
        return self.rows.weight

    @cached_property
    def leaf_of_row(self) -> IntArray:
        """Position of each row's class among the leaves, (n_rows,)."""
        return self.tree.leaf_position[self.rows.codes]

    def sum_chunks(self, measure: Callable[[slice, FloatArray], Any]) -> Any:
        """Sum the results of `measure`, which may be tuples, over chunks of log-odds."""
        total: Any = None
        step = _CHUNKS_HELD * chunk_rows(self.tree.n_nodes)
        for held in row_slices(len(self.rows), step):
            results: dict[int, Any] = {}

            def keep(
                rows: slice, log_odds: FloatArray, results: Any = results, begin: int = held.start
            ) -> None:
                results[rows.start] = measure(slice(begin + rows.start, begin + rows.stop), log_odds)

            for_each_chunk(self.tree.n_nodes, self.scorer, self.rows.X[held], keep, self.n_jobs)
            for start in sorted(results):
                total = results[start] if total is None else _plus(total, results[start])
        return total

    def probabilities(self, log_odds: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Class probabilities of a chunk before and after external calibration (None without it)."""
        log_proba = class_log_proba(self.tree, log_odds)
        before = np.exp(log_proba)
        if self.external is None:
            return before, None
        return before, np.exp(self.external.predict_log_proba(log_proba))


def _plus(total: Any, more: Any) -> Any:
    return tuple(map(_plus, total, more)) if isinstance(total, tuple) else total + more


def tree_classifier(clf: Any, X: Matrix) -> tuple[Any, Matrix]:
    """Return the nested dichotomy, which may be the last step of a pipeline, and its validated input."""
    clf, X = last_step(clf, X)
    return clf, clf.validated_rows(X)


def last_step(clf: Any, X: Matrix) -> tuple[Any, Matrix]:
    """Return the nested dichotomy, which may be the last step of a pipeline, and its input."""
    fitted_dichotomy(clf)  # before any row is transformed
    while isinstance(clf, Pipeline):
        clf, X = clf[-1], clf[:-1].transform(X) if len(clf) > 1 else X
    return clf, X


def fitted_dichotomy(clf: Any) -> Any:
    """Return the nested dichotomy, which may be the last step of a pipeline."""
    check_is_fitted(clf)
    if isinstance(clf, Pipeline):
        return fitted_dichotomy(clf[-1])
    if not hasattr(clf, "model_"):
        raise TypeError(
            "Only a nested dichotomy has nodes: give a fitted NestedDichotomyClassifier, "
            "NestedDichotomyEnsemble or CalibratedClassifier, or a pipeline that ends in one, not a "
            f"{type(clf).__name__}."
        )
    return clf


def codes_of(y: npt.ArrayLike, classes: LabelArray, n_rows: int) -> IntArray:
    """Return the index of each label among the classes; raise if a label is unknown."""
    if np.shape(y) != (n_rows,):
        raise ValueError(f"y must have one label for each of the {n_rows} rows, got shape {np.shape(y)}.")
    return class_codes(y, classes)


@dataclass(frozen=True)
class NodeScores:
    """Log-odds of the nodes for their own rows, node after node."""

    log_odds: Segments
    raw: Segments | None
    final_nll: FloatArray | None


def node_scores(evaluated: EvaluatedModel) -> NodeScores:
    """Score every node's own rows; memory is proportional to rows times their depth."""
    tree, external = evaluated.tree, evaluated.external
    own = _OwnScores(evaluated)
    scores = np.empty((2 if is_calibrated(evaluated.scorer) else 1, own.offsets[-1]))
    final_nll = None if external is None else np.empty(len(evaluated.rows))

    def keep(rows: slice, stacked: FloatArray) -> None:
        for stage, log_odds in enumerate(stacked):
            own.collect(rows, log_odds, scores[stage])
        if external is not None and final_nll is not None:
            final_nll[rows] = _final_nll(tree, external, stacked[0], evaluated.rows.codes[rows])

    for_each_chunk(tree.n_nodes, _StackedScorer(evaluated.scorer), evaluated.rows.X, keep, evaluated.n_jobs)
    segments = [own.task.segments(stage) for stage in scores]
    return NodeScores(segments[0], segments[1] if len(segments) > 1 else None, final_nll)


def _final_nll(tree: ClassTree, external: Any, log_odds: FloatArray, codes: IntArray) -> FloatArray:
    log_proba = class_log_proba(tree, log_odds)
    external.predict_log_proba(log_proba, out=log_proba)
    result: FloatArray = -log_proba[np.arange(len(codes)), codes]
    return result


class _OwnScores:
    """Positions of each row's scores at its ancestors in a flat array, node after node."""

    def __init__(self, evaluated: EvaluatedModel) -> None:
        self._tree = evaluated.tree
        self.task = NodeTask(evaluated.rows, evaluated.tree)
        self.offsets = np.concatenate([[0], np.cumsum(self.task.node_size)])
        # a row's position at a node is its position among all rows sorted by leaf, plus the node's shift
        self._shift = self.offsets[:-1] - self.task.leaf_offset[self._tree.start]
        self._place = np.empty(len(evaluated.rows), dtype=np.intp)
        self._place[self.task.row_order] = np.arange(len(self._place))
        self._node_above_leaf = _node_above_leaf(self._tree)

    def collect(self, rows: slice, log_odds: FloatArray, out: FloatArray) -> None:
        """Write the scores of a chunk of rows to their positions, from the leaves to the root."""
        node, place = self._node_above_leaf[self.task.leaf_of_row[rows]], self._place[rows]
        row = np.arange(len(node))
        while len(row):
            out[self._shift[node] + place] = log_odds[row, node]
            node = self._tree.parent[node]
            below_root = node >= 0
            node, place, row = node[below_root], place[below_root], row[below_root]


def _node_above_leaf(tree: ClassTree) -> IntArray:
    """Return the parent of each leaf."""
    above = np.empty(tree.n_classes, dtype=np.intp)
    nodes = np.arange(tree.n_nodes)
    for child in (tree.left, tree.right):
        is_leaf = child < 0
        above[~child[is_leaf]] = nodes[is_leaf]
    return above


@dataclass(frozen=True)
class _StackedScorer:
    """Scorer that stacks the final log-odds and, with internal calibration, the raw ones."""

    scorer: Scorer
    pair_log_odds: Any = None  # not asked for

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of shape (1 or 2, n_rows, n_nodes)."""
        if is_calibrated(self.scorer):
            return np.stack(_final_and_raw(self.scorer, X))
        return self.scorer.log_odds(X)[np.newaxis]


def is_calibrated(scorer: Any) -> bool:
    """Return True if the nodes have internal calibration."""
    if isinstance(scorer, AveragedScorer):
        return all(map(is_calibrated, scorer.members))
    return isinstance(scorer, CalibratedScorer)


def _final_and_raw(scorer: Any, X: Matrix) -> tuple[FloatArray, FloatArray]:
    """Log-odds after and before internal calibration; no node scores a row twice."""
    if isinstance(scorer, CalibratedScorer):
        raw = scorer.scorer.log_odds(X)
        return replace(scorer, scorer=GivenScores()).log_odds(raw), raw
    finals, raws = zip(*(_final_and_raw(member, X) for member in scorer.members), strict=True)
    return averaged(iter(finals)), averaged(iter(raws))
