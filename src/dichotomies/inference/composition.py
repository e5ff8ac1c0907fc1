"""Composition of node log-odds into class log-probabilities, and chunks of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from joblib import effective_n_jobs

from dichotomies._common.blas import FORK_GATE
from dichotomies._common.parallel import LIMIT, row_slices, rows_within, run, written
from dichotomies._common.progress import SHOWS_ANSWERS, Progress
from dichotomies._kernels.compile import canonical, is_small
from dichotomies._kernels.composition import path_sums, plain_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import FloatArray, Matrix
    from dichotomies.learners import Scorer
    from dichotomies.tree import ClassTree

#: Bytes of node log-odds held at a time, per worker.
CHUNK_BYTES = 32 * 2**20

#: Bytes of intermediate results while composing them, small enough for a core's cache.
_CACHED_BYTES = 128 * 2**10

#: Bytes of node log-odds and class log-probabilities of several trees while they are pooled.
_POOLED_BYTES = 2**20

#: Chunks are multiples of this many rows, so that BLAS meets every row at the same place of its blocks.
_ALIGNMENT = 64
_MAX_ROWS = 8192

#: Arrays of a chunk's size that are held at a time at most, by searches and prediction sets.
_ARRAYS = 10


def class_log_proba(
    tree: ClassTree,
    log_odds: FloatArray,
    out: FloatArray | None = None,
    n_rows: int | None = None,
) -> FloatArray:
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
    n_rows : int, optional
        Number of rows that these are a block of. It decides if compiled code is used.

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
    arrays = canonical(tree.left), canonical(tree.right), canonical(tree.leaf_order)  # once for all blocks
    n_rows = len(log_odds) if n_rows is None else n_rows
    sums = path_sums.when(is_small(n_rows, plain_seconds(n_rows * tree.n_nodes, tree.depth), is_answer=True))
    for rows in row_slices(len(log_odds), rows_within(_CACHED_BYTES, tree.n_nodes)):
        block = log_odds[rows]
        sums(block, _log_likelier(block), *arrays, out[rows])
    return out


def _log_likelier(log_odds: FloatArray) -> FloatArray:
    """Log-probability of the likelier side, to 1e-16; numpy's exp and log beat a kernel's."""
    result = np.abs(log_odds)
    np.negative(result, out=result)
    np.exp(result, out=result)
    result += 1.0
    np.log(result, out=result)
    return np.negative(result, out=result)


def cached_rows(width: int) -> int:
    """Rows per block so that `width` numbers of each stay in a core's cache while trees are pooled."""
    return rows_within(_POOLED_BYTES, width, multiple_of=_ALIGNMENT)


def chunk_rows(width: int, n_workers: int = 1) -> int:
    """Rows per chunk so that `width` numbers of each fit into `CHUNK_BYTES`, and into the call's limit."""
    limit = LIMIT.get()
    most = CHUNK_BYTES if limit is None else min(CHUNK_BYTES, limit // (_ARRAYS * n_workers))
    return rows_within(most, width, multiple_of=_ALIGNMENT, at_most=_MAX_ROWS)


def bytes_of_chunk(width: int) -> int:
    """Memory that the smallest chunk takes, with all intermediate results."""
    return _ARRAYS * 8 * width * _ALIGNMENT


def _within_limit(width: int, n_jobs: int | None) -> tuple[int, int | None]:
    """Rows of a chunk and number of workers that stay within the limit of the call."""
    limit = LIMIT.get()
    if limit is None:
        return chunk_rows(width), n_jobs
    least = bytes_of_chunk(width)
    if least > limit:
        raise ValueError(
            f"max_memory leaves {written(limit)} for predictions, but chunks of {_ALIGNMENT} rows, the "
            f"smallest there are, take {written(least)} with this model: allow more."
        )
    n_workers = min(effective_n_jobs(n_jobs), limit // least)
    return chunk_rows(width, n_workers), n_workers


def in_chunks(width: int, n_rows: int, work: Callable[[slice], None], n_jobs: int | None = None) -> None:
    """Call `work` with the rows of each chunk, in any order and from several threads.

    Where the estimator is verbose, jobs of more than two seconds report their progress.
    """
    if n_rows == 1:  # a service's request: limiting BLAS to one thread would take longer than the work
        with FORK_GATE:
            work(slice(0, 1))
    else:
        step, n_jobs = _within_limit(width, n_jobs)
        chunks = [(rows,) for rows in row_slices(n_rows, step)]
        progress = Progress("predict", patience=2.0) if SHOWS_ANSWERS.get() else None
        run(work, chunks, n_jobs=n_jobs, shared_memory=True, progress=progress)


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
