"""External calibration on rows that the nodes have not seen, and `Calibration`, the record of both kinds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dichotomies._common.chunks import rows_within
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass.auto import AutoCalibration
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Such
from dichotomies.rows.folds import stratified
from dichotomies.training.plan import most_calibration_rows

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.inference.fitted import FittedForest
    from dichotomies.rows import Rows
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

NONE = "none"

#: Class log-probabilities kept for fitting external calibrators; beyond this, a sample of the rows.
_CALIBRATION_BYTES = 2**30


@savable(
    "calibration",
    internal=str,
    external=str,
    nll=Such(
        lambda nll: (
            isinstance(nll, dict)
            and all(isinstance(key, tuple) and isinstance(value, float) for key, value in nll.items())
        ),
        "has a number for each pair of calibrators",
    ),
    n_rows=int,
    note=str,
)
@dataclass(frozen=True)
class Calibration:
    """The calibration of a fitted classifier, and the comparison by which it was chosen.

    Attributes
    ----------
    internal, external : str
        Names of the calibrators of the nodes and of the class probabilities, or "none".
    nll : dict
        Out-of-fold NLL of each pair ``(internal, external)`` that was compared, in nats per row; empty if
        both were given.
    n_rows : int
        Number of rows that the pairs were compared on; 0 without a comparison.
    note : str
        Reason for a pair that is not the best.

    Examples
    --------
    >>> from dichotomies.training.external import Calibration
    >>> print(Calibration("platt", "none"))
    platt at the nodes, none outside
    >>> print(Calibration("platt", "vector", {("none", "none"): 0.5, ("platt", "vector"): 0.25}, 1000))
    platt at the nodes, vector outside; out-of-fold NLL 0.250, best of 2 pairs (0.500 uncalibrated)
    """

    internal: str = NONE
    external: str = NONE
    nll: dict[tuple[str, str], float] = field(default_factory=dict)
    n_rows: int = 0
    note: str = ""

    def __str__(self) -> str:
        words = f"{self.internal} at the nodes, {self.external} outside"
        words += f", {self.note}" if self.note else ""
        chosen, plain = (self.internal, self.external), (NONE, NONE)
        if len(self.nll) < 2 or chosen not in self.nll:
            return words
        least = self.nll[chosen]
        rank = "best" if least == min(self.nll.values()) else "not clearly beaten by any"
        words += f"; out-of-fold NLL {least:.3f}, {rank} of {len(self.nll)} pairs"
        if chosen != plain in self.nll:
            nll = self.nll[plain]  # of naive Bayes in the millions
            words += f" ({nll:.3f} uncalibrated)" if nll < 1000 else f" ({nll:.1e} uncalibrated)"
        return words


class Start(NamedTuple):
    """A fitted calibrator to start from, and the column of each class in it; see `fit_from`."""

    calibrator: MulticlassCalibrator
    columns: IntArray


class Unseen(NamedTuple):
    """Rows, and a model that scores them as new ones.

    Attributes
    ----------
    rows : (n_unseen,)
        Row numbers.
    model : FittedForest
        Without external calibration.
    features : (n_unseen, n_features) or (n_unseen,)
        What the model reads: features, or row numbers, see `UnseenScorer`.
    """

    rows: IntArray
    model: FittedForest
    features: Matrix

    def log_proba(self, n_jobs: int | None) -> FloatArray:
        """Class log-probabilities in single precision, (n_unseen, n_classes)."""
        return self.model.predict_log_proba(self.features, n_jobs, np.float32)

    def log_odds(self) -> FloatArray:
        """Log-odds at the different nodes of all trees, (n_unseen, n_nodes)."""
        return self.model.scorer.log_odds(self.features)


def calibration_sample(plan: Plan, forest: Forest, rows: Rows, among: IntArray, rng: Any) -> IntArray:
    """All of the row numbers in `among`, or a stratified sample whose class probabilities fit into memory."""
    most = rows_within(_CALIBRATION_BYTES, forest.n_classes, itemsize=4)
    if plan.max_memory is not None:
        most = min(most, most_calibration_rows(plan, forest, rows))
    return stratified(rows.codes, among, most, rng)


def fit_external(
    plan: Plan,
    fitted: FittedForest,
    rows: Rows,
    unseen: Unseen,
    before: FittedForest | None = None,
) -> FittedForest:
    """Add the external calibrator to a model without one.

    Parameters
    ----------
    before : FittedForest, optional
        Model that `fitted` is an update of; its calibrator is started from.
    """
    assert plan.external_calibration is not None
    sample, log_proba = rows.take(unseen.rows), unseen.log_proba(plan.n_jobs)
    start = None if before is None else _start(before, rows.classes)
    return replace(fitted, external=fit_calibrator(plan.external_calibration, sample, log_proba, start))


def _start(before: FittedForest, classes: LabelArray) -> Start | None:
    """Calibrator to start from, for a model of these classes."""
    known = before.tree.classes
    place = np.minimum(np.searchsorted(known, classes), len(known) - 1)
    columns = np.where(known[place] == classes, place, -1)
    return None if before.external is None else Start(before.external, columns)


def fit_calibrator(
    calibrator: MulticlassCalibrator, rows: Rows, log_proba: FloatArray, start: Start | None = None
) -> MulticlassCalibrator | None:
    """Fit a clone of the calibrator; None where no row has any weight."""
    if not len(rows) or (rows.weight is not None and not rows.weight.any()):
        return None
    fitted: MulticlassCalibrator = clone(calibrator)
    if start is None:
        return fitted.fit(log_proba, rows.codes, sample_weight=rows.weight)
    return fitted.fit_from(*start, log_proba, rows.codes, sample_weight=rows.weight)


def given(plan: Plan) -> Calibration:
    """Calibration of a plan that leaves nothing to choose."""
    return Calibration(name_of(plan.internal_calibration), name_of(plan.external_calibration))


def settled(
    plan: Plan, fitted: FittedForest, calibration: Calibration, n_rows: int
) -> tuple[FittedForest, Calibration]:
    """Model and calibration after external calibration on rows held out, where "auto" chose by itself."""
    external = fitted.external
    if not isinstance(external, AutoCalibration):
        return fitted, replace(calibration, external=given(plan).external)
    chosen = None if external.chosen_ == NONE else external.calibrator_
    nll = {(calibration.internal, name): nll for name, nll in external.nll_.items()}
    return replace(fitted, external=chosen), Calibration(calibration.internal, external.chosen_, nll, n_rows)


def name_of(calibrator: Any) -> str:
    """Name of a calibrator in its registry; of a user's own class, the name of the class."""
    if calibrator is None or isinstance(calibrator, str):
        return calibrator or NONE
    kind = type(calibrator)
    return BINARY.name_of(kind) or MULTICLASS.name_of(kind) or kind.__name__
