"""From trained nodes to class probabilities, a chunk of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dichotomies._common.parallel import run
from dichotomies._kernels.compile import canonical, is_small
from dichotomies._kernels.composition import implied_log_odds, path_sums, plain_seconds
from dichotomies.inference.pooling import POOLINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dichotomies._common.typing import FloatArray, IntArray, Matrix
    from dichotomies.learners import Scorer
    from dichotomies.tree import ClassTree
    from dichotomies.tree.forest import Forest

#: Bytes of node log-odds held at a time, per worker.
CHUNK_BYTES = 32 * 2**20

#: Bytes of intermediate results while composing them, small enough for a core's cache.
_CACHED_BYTES = 128 * 2**10

#: Chunks are multiples of this many rows, so that BLAS meets every row at the same place of its blocks.
_ALIGNMENT = 64
_MAX_ROWS = 8192


class Recalibration(Protocol):
    """What is done to class log-probabilities after composition: an external calibrator."""

    def predict_log_proba(self, log_proba: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Recalibrate rows of class log-probabilities."""


def class_log_proba(tree: ClassTree, log_odds: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Log-probability of every class from the log-odds at every node.

    The log-probability of a class is the sum of the log-probabilities of the turns on its path
    (Proposition 1 of the paper, before the sign is changed).

    Parameters
    ----------
    tree : ClassTree
    log_odds : ndarray of shape (n_rows, n_nodes)
        Log-odds of going left.
    out : ndarray of shape (n_rows, n_classes), optional
        Where to write.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Columns in the order of ``tree.classes``.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies import ClassTree
    >>> tree = ClassTree.from_nested([["a", "b"], "c"])
    >>> np.exp(class_log_proba(tree, np.log([[3.0, 1.0]]))).round(3)  # 3 : 1, then 1 : 1
    array([[0.375, 0.375, 0.25 ]])
    """
    out = np.empty((len(log_odds), tree.n_classes)) if out is None else out
    step = max(1, _CACHED_BYTES // (8 * max(1, tree.n_nodes)))
    arrays = canonical(tree.left), canonical(tree.right), canonical(tree.leaf_order)  # once for all blocks
    sums = path_sums.when(is_small(len(log_odds), plain_seconds(log_odds.size, tree.depth), is_answer=True))
    for i in range(0, len(log_odds), step):
        block = log_odds[i : i + step]
        sums(block, _log_likelier(block), *arrays, out[i : i + step])
    return out


def _log_likelier(log_odds: FloatArray) -> FloatArray:
    """Log-probability of the likelier side, to 1e-16; numpy's exp and log beat a kernel's."""
    result = np.abs(log_odds)
    np.negative(result, out=result)
    np.exp(result, out=result)
    result += 1.0
    np.log(result, out=result)
    return np.negative(result, out=result)


class Model(Protocol):
    """Whatever answers with class log-probabilities.

    Attributes
    ----------
    n_classes, width : int
        Columns of its answer, and of all that it holds at a time on the way.
    """

    @property
    def n_classes(self) -> int: ...  # noqa: D102

    @property
    def width(self) -> int: ...  # noqa: D102

    def log_proba(self, X: Matrix, out: FloatArray | None = None) -> FloatArray:
        """Class log-probabilities of a chunk of rows, written to `out` if given."""


@dataclass(frozen=True)
class TreeModel:
    """One tree, its trained nodes and, if there is one, the calibrator of its output."""

    tree: ClassTree
    scorer: Scorer
    external: Recalibration | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.tree.n_classes

    @property
    def width(self) -> int:
        """Number of nodes."""
        return self.tree.n_nodes

    def log_proba(self, X: Matrix, out: FloatArray | None = None) -> FloatArray:
        """Class log-probabilities of a chunk of rows."""
        out = class_log_proba(self.tree, self.scorer.log_odds(X), out)
        return out if self.external is None else self.external.predict_log_proba(out, out=out)


@dataclass(frozen=True)
class PooledModel:
    """Several trees whose probabilities are pooled.

    Attributes
    ----------
    scorer : Scorer
        Of the different nodes of all trees.
    pooling : str
        A name of `dichotomies.inference.pooling.POOLINGS`.
    members : sequence of Recalibration or None
        Calibrators of the trees' outputs; empty without any.
    external : Recalibration or None
        The calibrator of the pool.
    """

    forest: Forest
    scorer: Scorer
    pooling: str
    members: Sequence[Recalibration | None] = ()
    external: Recalibration | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.forest.n_classes

    @property
    def width(self) -> int:
        """Number of different nodes, and of those and the classes of one tree at a time."""
        return self.forest.n_different + 2 * self.n_classes

    def by_tree(self, X: Matrix, consume: Callable[[int, FloatArray], None]) -> None:
        """Hand over each tree's number and class log-probabilities, calibrated if it has a calibrator."""
        log_odds = self.scorer.log_odds(X)
        for t, tree in enumerate(self.forest.trees):
            log_proba = class_log_proba(tree, self.forest.log_odds_of_tree(t, log_odds))
            calibrator = self.members[t] if self.members else None
            if calibrator is not None:
                calibrator.predict_log_proba(log_proba, out=log_proba)
            consume(t, log_proba)

    def log_proba(self, X: Matrix, out: FloatArray | None = None) -> FloatArray:
        """Class log-probabilities of a chunk of rows."""
        out = np.empty((X.shape[0], self.n_classes)) if out is None else out
        pool = POOLINGS[self.pooling](out)
        self.by_tree(X, lambda _, log_proba: pool.add(log_proba))
        pool.finish()
        return out if self.external is None else self.external.predict_log_proba(out, out=out)


@dataclass(frozen=True)
class ImpliedScorer:
    """The log-odds at a tree's nodes that a model's class probabilities imply, whatever the model is.

    The NLL of any class probabilities is the sum of the NLLs of these answers along the path of the class.
    """

    tree: ClassTree
    model: Model

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        tree = self.tree
        return implied_log_odds(self.model.log_proba(X), tree.left, tree.right, tree.leaf_order)


def chunk_rows(width: int) -> int:
    """Rows per chunk so that what is held of them fits into `CHUNK_BYTES`; depends on the model alone."""
    rows = CHUNK_BYTES // (8 * max(1, width))
    return int(np.clip(rows // _ALIGNMENT * _ALIGNMENT, _ALIGNMENT, _MAX_ROWS))


def in_chunks(width: int, n_rows: int, work: Callable[[slice], None], n_jobs: int | None = None) -> None:
    """Call `work` with the rows of each chunk, in any order and from several threads."""
    step = chunk_rows(width)
    chunks = [(slice(i, min(i + step, n_rows)),) for i in range(0, n_rows, step)]
    run(work, chunks, n_jobs=n_jobs, shared_memory=True)


def for_each_chunk(
    tree: ClassTree,
    scorer: Scorer,
    X: Matrix,
    consume: Callable[[slice, FloatArray], None],
    n_jobs: int | None = None,
) -> None:
    """Score rows chunk by chunk and hand over the log-odds at every node.

    Parameters
    ----------
    consume : callable
        Called with the rows (a slice) and their log-odds of shape (rows, n_nodes), in any order and
        from several threads.
    """
    in_chunks(tree.n_nodes, X.shape[0], lambda rows: consume(rows, scorer.log_odds(X[rows])), n_jobs)


def log_proba_of(
    model: Model, X: Matrix, n_jobs: int | None = None, dtype: type[np.floating[Any]] = np.float64
) -> FloatArray:
    """Class log-probabilities of rows, shape (n_rows, n_classes)."""
    out: FloatArray = np.empty((X.shape[0], model.n_classes), dtype=dtype)

    def keep(rows: slice) -> None:
        if out.dtype == np.float64:
            model.log_proba(X[rows], out[rows])
        else:
            out[rows] = model.log_proba(X[rows])

    in_chunks(model.width, X.shape[0], keep, n_jobs)
    return out


def most_probable(model: Model, X: Matrix, n_jobs: int | None = None) -> IntArray:
    """Code of the most probable class of each row, never holding more than a chunk of probabilities."""
    best = np.empty(X.shape[0], dtype=np.intp)

    def keep(rows: slice) -> None:
        best[rows] = model.log_proba(X[rows]).argmax(axis=1)

    in_chunks(model.width, X.shape[0], keep, n_jobs)
    return best


def top_k(model: Model, X: Matrix, k: int, n_jobs: int | None = None) -> tuple[IntArray, FloatArray]:
    """Codes and log-probabilities of each row's `k` most probable classes, the most probable first.

    Of classes that are equally probable the one with the lower code comes first, as in `most_probable`. No
    more than a chunk of probabilities is ever held.
    """
    codes = np.empty((X.shape[0], k), dtype=np.intp)
    best = np.empty((X.shape[0], k))

    def keep(rows: slice) -> None:
        log_proba = model.log_proba(X[rows])
        codes[rows] = _largest(log_proba, k)
        best[rows] = np.take_along_axis(log_proba, codes[rows], axis=1)

    in_chunks(model.width, X.shape[0], keep, n_jobs)
    return codes, best


def _largest(values: FloatArray, k: int) -> IntArray:
    """Places of the `k` largest values of each row, the largest first and, among equals, the first first."""
    if k < values.shape[1]:
        least = np.partition(values, -k, axis=1)[:, -k, None]  # of those that are wanted
        # all above it, and as many of those equal to it as there is room for, in their order
        rank = np.where(values > least, 0, np.where(values == least, 1, 2)).astype(np.int8)
        places = np.argsort(rank, axis=1, kind="stable")[:, :k]
    else:
        places = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    order = np.argsort(-np.take_along_axis(values, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
