"""Per-row quantities of class probabilities on a GPU, reduced there; only they come to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.array_api import like, own_entries
from dichotomies._common.chunks import row_slices, rows_within
from dichotomies._common.typing import IntArray
from dichotomies._common.validation import to_host
from dichotomies.metrics._input import check_proba

#: Bytes of probabilities reduced at a time.
_BLOCK_BYTES = 2**29


def device_facts(
    matrix: Any, codes: IntArray, top_k: tuple[int, ...], xp: Any, *, is_log: bool
) -> dict[str, Any]:
    """Return the fields of `RowFacts` that depend on the probabilities."""
    steps = row_slices(matrix.shape[0], rows_within(_BLOCK_BYTES, matrix.shape[1]))
    parts = [_of_block(matrix[rows, :], codes[rows], top_k, xp, is_log, rows.start) for rows in steps]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _of_block(
    x: Any, codes: IntArray, top_k: tuple[int, ...], xp: Any, is_log: bool, first_row: int
) -> dict[str, Any]:
    p = xp.exp(x) if is_log else x
    columns, own_column = like(np.arange(x.shape[1]), x, xp)[None, :], like(codes, x, xp)
    predicted, own = xp.argmax(x, axis=1), own_entries(x, own_column, xp)
    total = _host(xp.sum(p, axis=1))
    check_proba(_host(xp.min(p, axis=1)), total, to_host(p[:1, :1]).dtype, first_row)

    is_true, is_best = columns == own_column[:, None], columns == predicted[:, None]
    ahead = (x > own[:, None]) | ((x == own[:, None]) & (columns < own_column[:, None]))
    brier = xp.sum((p - xp.astype(is_true, p.dtype)) ** 2, axis=1)
    largest = xp.sort(p, axis=1, descending=True)[:, : min(max(top_k), x.shape[1])]
    sums = np.minimum(np.cumsum(_host(largest), axis=1), 1.0)
    with np.errstate(divide="ignore"):
        log_own = _host(own) if is_log else np.log(_host(own))
        log_complement = _log_complement(x, is_best, xp, is_log=is_log)
    wanted = [min(k, x.shape[1]) - 1 for k in top_k]
    rank = to_host(xp.sum(xp.astype(ahead, xp.int64), axis=1))
    return {
        "predicted": to_host(predicted).astype(np.intp),
        "log_proba": log_own,
        "brier": _host(brier),
        "confidence": sums[:, 0],
        "log_complement": log_complement,
        "rank": rank,
        "top_k_confidence": sums[:, wanted],
    }


def _log_complement(x: Any, is_best: Any, xp: Any, *, is_log: bool) -> Any:
    """Logarithm of the probability of all classes but the most probable."""
    if not is_log:
        return np.log(_host(xp.sum(xp.where(is_best, xp.zeros_like(x), x), axis=1)))
    others = xp.where(is_best, xp.full_like(x, -np.inf), x)
    top = xp.max(others, axis=1, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return _host(top[:, 0]) + np.log(_host(xp.sum(xp.exp(others - top), axis=1)))


def _host(values: Any) -> Any:
    return to_host(values).astype(np.float64)
