"""Answers without the whole distribution: top k, classes above a threshold, given candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies.inference.search import TreeSearch

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.inference.fitted import FittedForest
    from dichotomies.inference.forest_search import ForestSearch

#: Ways to find the most probable classes.
SEARCHES = ("auto", "exact", "beam", "greedy")


@dataclass(frozen=True, eq=False)
class TopK:
    """The most probable classes of each row, the most probable first.

    Attributes
    ----------
    codes : (n_rows, k)
    proba : (n_rows, k)
    n_visits : (n_rows,)
        Nodes evaluated; all of them where the whole distribution was computed.
    is_searched : (n_rows,)
        False where the whole distribution was computed.
    """

    codes: IntArray
    proba: FloatArray
    n_visits: IntArray
    is_searched: BoolArray

    @classmethod
    def empty(cls, n_rows: int, k: int) -> TopK:
        """Allocate."""
        codes, n_visits = np.empty((n_rows, k), dtype=np.intp), np.empty(n_rows, dtype=np.intp)
        return cls(codes, np.empty((n_rows, k)), n_visits, np.empty(n_rows, dtype=bool))


def top_k(
    model: FittedForest,
    X: Matrix,
    k: int,
    *,
    search: str = "auto",
    width: int = 10,
    n_jobs: int | None = None,
) -> TopK:
    """Find the `k` most probable classes of each row; see `DichotomyEstimator.predict_top_k`.

    Of equally probable classes the one with the lower code comes first.
    """
    out = TopK.empty(X.shape[0], k)
    way = _way(model, search, k, X)

    def answer(rows: slice) -> None:
        places, few = np.arange(X.shape[0])[rows], _take(X, rows)
        if way is not None:
            options: dict[str, dict[str, Any]] = {
                "beam": {"width": width},
                "greedy": {"width": k},
                "auto": {"most": way.most_visits(X)},
                "exact": {"most": way.limit(X, k)},
            }
            places = places[~_searched(way, few, out, rows, **options[search])]
        if len(places):
            _whole(model, X[places], out, places)

    model.in_chunks(X, answer, n_jobs)
    return out


def _take(X: Matrix, rows: slice) -> Matrix:
    """Rows of a chunk; slicing a sparse matrix takes longer than searching for a row."""
    return X if rows == slice(0, X.shape[0]) else X[rows]


def _way(model: FittedForest, search: str, k: int, X: Matrix) -> TreeSearch | ForestSearch | None:
    """The search to use; None for the whole distribution."""
    if search not in SEARCHES:
        raise ValueError(f"search must be one of {SEARCHES}, got {search!r}.")
    way = None if model.search is None or model.search.needs_sum else model.search
    if search == "auto":
        return way if way is not None and way.is_worthwhile(X, k) else None
    if search == "exact":
        return way if way is not None and way.limit(X, k) != 0 else None
    if not isinstance(way, TreeSearch):
        raise ValueError(
            f"search={search!r} needs one tree whose probabilities need no sum over all classes: set "
            "external_calibration=None, with an internal_calibration if wanted, or search='exact'."
        )
    return way


def _searched(
    search: Any,
    X: Matrix,
    out: TopK,
    rows: slice,
    *,
    width: int | None = None,
    most: int | None = None,
) -> BoolArray:
    """Search, and return which rows were answered."""
    k = out.codes.shape[1]
    found = search.best(X, k, most=most) if width is None else search.beam(X, k, width)
    out.codes[rows], out.proba[rows] = found.codes, np.exp(found.log_proba)
    out.n_visits[rows] = found.n_visits
    out.is_searched[rows] = (found.codes >= 0).all(axis=1)
    return out.is_searched[rows]


def _whole(model: FittedForest, X: Matrix, out: TopK, places: IntArray) -> None:
    """Compute the whole distribution."""
    log_proba = model.log_proba(X)
    codes = largest(log_proba, out.codes.shape[1])
    out.codes[places] = codes
    out.proba[places] = np.exp(np.take_along_axis(log_proba, codes, axis=1))
    out.n_visits[places], out.is_searched[places] = model.forest.n_different, False


def above(model: FittedForest, X: Matrix, threshold: float, n_jobs: int | None = None) -> csr_array:
    """Find all classes whose probability is at least `threshold`; see `DichotomyEstimator.predict_above`."""
    most = min(model.n_classes, int(1 / threshold) + 1)  # more cannot be so probable
    search = _way(model, "auto", most, X)
    parts: dict[int, tuple[IntArray, IntArray, FloatArray]] = {}

    def answer(rows: slice) -> None:
        if search is None:
            proba = np.exp(model.log_proba(_take(X, rows)))
            of_row, codes = np.nonzero(proba >= threshold)
            parts[rows.start] = rows.start + of_row, codes, proba[of_row, codes]
        else:
            found = search.best(_take(X, rows), most, np.log(threshold))
            of_row, which = np.nonzero(found.codes >= 0)
            codes, log_proba = found.codes[of_row, which], found.log_proba[of_row, which]
            parts[rows.start] = rows.start + of_row, codes, np.exp(log_proba)

    model.in_chunks(X, answer, n_jobs)
    shape = X.shape[0], model.n_classes
    if not parts:
        return csr_array(shape)
    of_row, codes, proba = (np.concatenate(each) for each in zip(*parts.values(), strict=True))
    return csr_array((proba, (of_row, codes)), shape)


def proba_of(model: FittedForest, X: Matrix, codes: IntArray, n_jobs: int | None = None) -> FloatArray:
    """Probabilities of given classes (n_rows, m) of each row; see `DichotomyEstimator.proba_of`."""
    out = np.empty(codes.shape)
    search = _way(model, "auto", codes.shape[1], X)

    def answer(rows: slice) -> None:
        if search is None:
            out[rows] = np.exp(np.take_along_axis(model.log_proba(_take(X, rows)), codes[rows], axis=1))
        else:
            out[rows] = np.exp(search.log_proba_of(_take(X, rows), codes[rows])[0])

    model.in_chunks(X, answer, n_jobs)
    return out


def largest(values: FloatArray, k: int) -> IntArray:
    """Places of the `k` largest values of each row, in descending order; equals in their order."""
    if k < values.shape[1]:
        least = np.partition(values, -k, axis=1)[:, -k, None]  # of those that are wanted
        # all above it, and as many of those equal to it as there is room for, in their order
        rank = np.where(values > least, 0, np.where(values == least, 1, 2)).astype(np.int8)
        places = np.argsort(rank, axis=1, kind="stable")[:, :k]
    else:
        places = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    order = np.argsort(-np.take_along_axis(values, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
