"""`KeptRows`: a bounded sample of the training rows that a model keeps, so that it can be updated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.chunks import rows_within
from dichotomies._common.typing import BoolArray
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Offsets, Optional, Size, check_value, expect
from dichotomies.rows import Rows
from dichotomies.rows.folds import hold_out

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.training.external import Unseen
    from dichotomies.training.plan import Plan


#: Memory for out-of-fold log-odds; beyond, they are those of a sample of the rows.
_SCORE_BYTES = 2**26


@savable(
    "kept-rows",
    codes=Array("integer", "n_rows", within=(0, "n_classes")),
    weight=Optional(Array("float", "n_rows")),
    fold=Optional(Array("integer", "n_rows", within=(0, 2**15))),
    sample=Array("integer", "n_sample", within=(0, "n_rows")),
    log_odds=Array("float", "n_sample", "n_nodes"),
    n_seen=Size("n_seen"),
)
@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows of every class, and their out-of-fold scores.

    Where there are more rows than are to be kept, a sample stratified by class is, and the rows of a class
    are weighted so that their total weight stays the same, unless the base learner takes no weights.

    Attributes
    ----------
    values : (n_rows, n_features) or (n_values,)
        The features; of sparse rows the values, with `indices` and `indptr` as in scipy.
    codes, weight, fold : (n_rows,)
        See `Rows`.
    sample : (n_sample,)
        Row numbers that have scores.
    log_odds : (n_sample, n_nodes)
        Of the forest's different nodes, with internal calibration, by models that have not seen the row, see
        `UnseenScorer`. Empty if nothing is to be fitted to them.
    n_seen : int
        Number of rows that these are a sample of.
    """

    values: FloatArray
    indices: IntArray | None
    indptr: IntArray | None
    codes: IntArray
    weight: FloatArray | None
    fold: IntArray | None
    sample: IntArray
    log_odds: FloatArray
    n_seen: int

    @classmethod
    def of(
        cls,
        plan: Plan,
        rows: Rows,
        scores: tuple[IntArray, FloatArray],
        rng: Any,
        *,
        n_old: int = 0,
        n_seen: int = 0,
    ) -> KeptRows:
        """Keep as many rows as planned, but at least one of each class."""
        (among, log_odds), most = scores, plan.keep_rows
        n_seen += len(rows) - n_old
        if isinstance(most, str) or len(rows) <= most:
            kept, weight, X = np.arange(len(rows)), rows.weight, rows.X
        else:
            # a fixed seed must not draw the same positions of every batch
            rng = np.random.RandomState((rng.randint(2**31) + n_seen) % 2**32)
            n_new = int(most * (len(rows) - n_old) / n_seen + rng.random_sample())
            old, new = np.split(rows.codes, [n_old])
            of_new = _sample_of_batch(new, np.isin(new, old), n_new, rng)
            kept = np.concatenate([_sample(old, most - len(of_new), rng), n_old + of_new])
            weight, X = _rescaled(rows, kept) if plan.learner.takes_weight else None, rows.features_of(kept)
        place = np.full(len(rows), -1, dtype=np.intp)
        place[kept] = np.arange(len(kept))
        is_kept = np.flatnonzero(place[among] >= 0)
        if len(is_kept) > (room := rows_within(_SCORE_BYTES, log_odds.shape[1], itemsize=4)):
            is_kept = is_kept[_sample(rows.codes[among[is_kept]], room, rng)]
        is_sparse = not isinstance(X, np.ndarray)
        return cls(
            X.data if is_sparse else X,
            X.indices if is_sparse else None,
            X.indptr if is_sparse else None,
            rows.codes[kept],
            weight,
            None if rows.fold is None else rows.fold[kept],
            place[among[is_kept]],
            log_odds[is_kept].astype(np.float32, copy=False),
            n_seen,
        )

    def __len__(self) -> int:
        return len(self.codes)

    def features(self, n_features: int) -> Matrix:
        """The features, an array or CSR."""
        if self.indptr is None or self.indices is None:
            return self.values
        return csr_array((self.values, self.indices, self.indptr), shape=(len(self), n_features))

    def rows(self, classes: LabelArray, n_features: int) -> Rows:
        """The rows, with the labels of their classes."""
        return Rows(self.features(n_features), self.codes, classes, self.weight, self.fold)

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless the features fit the rows; see `dichotomies.persistence.checks`."""
        if self.indptr is None:
            check_value(Array("float", "n_rows", "n_features"), self.values, "values", names)
        else:
            check_value(Offsets("n_rows", "n_values"), self.indptr, "indptr", names)
            check_value(
                Array("integer", "n_values", within=(0, "n_features")), self.indices, "indices", names
            )
            check_value(Array("float", "n_values"), self.values, "values", names)
        weight = self.weight
        expect(
            weight is None or bool(np.isfinite(weight).all() and (weight >= 0).all()), "weights are finite"
        )


def counted_once(rows: Rows, n_seen: int) -> Rows:
    """Rows to calibrate on: a row of a sample counts as one row, not as the rows that it stands for."""
    if rows.weight is None or len(rows) >= n_seen:
        return rows
    return rows.reweighted(rows.weight * (len(rows) / n_seen))


def unseen_scores(unseen: Unseen | None, n_nodes: int) -> tuple[IntArray, FloatArray]:
    """Row numbers, and the log-odds of their nodes by models that have not seen them."""
    if unseen is None:
        return np.empty(0, dtype=np.intp), np.empty((0, n_nodes), dtype=np.float32)
    return unseen.rows, unseen.log_odds().astype(np.float32)


def _sample(codes: IntArray, most: int, rng: Any) -> IntArray:
    """Numbers of at most so many rows, stratified, or one of each class where there are more classes."""
    if len(codes) <= most:
        return np.arange(len(codes))
    present, codes = np.unique(codes, return_inverse=True)
    share = min(1.0, (max(most, len(present)) - 0.25) / len(codes))
    return np.flatnonzero(~hold_out(codes, 1.0 - share, rng))


def _sample_of_batch(codes: IntArray, is_known: BoolArray, n: int, rng: Any) -> IntArray:
    """Numbers of about `n` rows of a batch, and at least one of each class that is not known."""
    first = np.unique(codes, return_index=True)[1]
    if n >= len(first):
        return _sample(codes, n, rng)
    return np.union1d(first[~is_known[first]], rng.permutation(len(codes))[:n])


def _rescaled(rows: Rows, kept: IntArray) -> FloatArray:
    """Weights of some rows, so that each class weighs as much as with all rows."""
    own = np.ones(len(kept)) if rows.weight is None else rows.weight[kept]
    codes = rows.codes[kept]
    total = np.bincount(codes, own, rows.n_classes)
    factor = np.divide(rows.class_weight, total, out=np.ones(rows.n_classes), where=total > 0)
    return own * factor[codes]


@savable(
    "drift",
    n_updates=Size("n_updates", 0),
    n_rows_fitted=Size("n_rows_fitted", 0),
    n_rows_added=Size("n_rows_added", 0),
    n_classes_added=Size("n_classes_added", 0),
    n_classes_forgotten=Size("n_classes_forgotten", 0),
    is_retrained=Array("boolean", "n_nodes"),
    nll_before=Optional(float),
    nll_after=Optional(float),
)
@dataclass(frozen=True, eq=False)
class Drift:
    """Changes of a model since it was fitted.

    Nodes that were trained again are what a refit of the same tree would give; what an update cannot give is
    another tree, and another choice of learner and calibrators.

    Attributes
    ----------
    n_updates : int
        Calls of `update`, `forget_class` and `partial_fit` since the model was fitted.
    n_rows_fitted, n_rows_added : int
        Rows that it was fitted to, and rows added since.
    n_classes_added, n_classes_forgotten : int
    is_retrained : (n_nodes,)
        True for the forest's different nodes that were trained since.
    nll_before, nll_after : float or None
        Of the last rows added, those of classes that were known: NLL by the model before it was given them,
        and by the updated one out of fold. None where there were no such rows, or no folds.
    """

    n_updates: int
    n_rows_fitted: int
    n_rows_added: int
    n_classes_added: int
    n_classes_forgotten: int
    is_retrained: BoolArray
    nll_before: float | None = None
    nll_after: float | None = None

    @property
    def share_retrained(self) -> float:
        """Share of the nodes that were trained since the fit."""
        return float(self.is_retrained.mean())

    @property
    def share_of_rows(self) -> float:
        """Rows added since the fit, as a share of all rows seen."""
        return self.n_rows_added / max(1, self.n_rows_fitted + self.n_rows_added)

    def __str__(self) -> str:
        said = {
            "updates": self.n_updates,
            "rows added": f"{self.n_rows_added:,} to {self.n_rows_fitted:,}",
            "classes added": self.n_classes_added,
            "classes forgotten": self.n_classes_forgotten,
            "nodes trained since the fit": f"{self.is_retrained.sum():,} of {len(self.is_retrained):,}",
        }
        if self.nll_before is not None:
            after = "" if self.nll_after is None else f", {self.nll_after:.3f} after"
            said["NLL of the last rows of known classes"] = f"{self.nll_before:.3f} before{after}"
        return "; ".join(f"{name}: {value}" for name, value in said.items())
