"""The choice of calibration: pairs of calibrators, at the nodes and outside, compared by out-of-fold NLL."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.best_of import best_of
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass.auto import AutoCalibration
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import GivenScores
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Such
from dichotomies.rows.sampling import stratified
from dichotomies.training.external import Unseen, fit_calibrator, out_of_fold_log_proba

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.calibrators.binary import BinaryCalibrator
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.rows import Rows
    from dichotomies.training.cross_fitting import CrossFit
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

NONE = "none"

#: Rows times classes that calibrators are compared on, and the fewest rows that are taken if there are many
#: classes; beyond, a stratified sample.
_MOST_PAIRS, _FEWEST_ROWS = 2**16, 2_000
#: Mean number of rows of a class below which models of the folds are much worse than the final one: a
#: calibration then has to be better than none by more standard errors. With very few, only a temperature is
#: tried: the models miss so much of the row's own class that they say little about the ranking.
_FEW_ROWS, _VERY_FEW_ROWS = 16, 4
_MARGIN, _MARGIN_OF_FEW = 1.0, 3.0
#: Share of the uncalibrated NLL that a temperature must not exceed with very few rows.
_SHARE_OF_VERY_FEW = 0.5
#: More of a row's loss does not count in the comparison: a single row that naive Bayes holds for impossible
#: would make the standard error larger than any gain.
_MOST_LOSS = 100.0


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

    Examples
    --------
    >>> from dichotomies.training.choice import Calibration
    >>> print(Calibration("platt", "none"))
    platt at the nodes, none outside
    >>> print(Calibration("platt", "vector", {("none", "none"): 0.5, ("platt", "vector"): 0.25}, 1000))
    platt at the nodes, vector outside; out-of-fold NLL 0.250, best of 2 pairs (0.500 uncalibrated)
    """

    internal: str = NONE
    external: str = NONE
    nll: dict[tuple[str, str], float] = field(default_factory=dict)
    n_rows: int = 0

    def __str__(self) -> str:
        words = f"{self.internal} at the nodes, {self.external} outside"
        chosen, plain = (self.internal, self.external), (NONE, NONE)
        if len(self.nll) < 2 or chosen not in self.nll:
            return words
        least = self.nll[chosen]
        rank = "best" if least == min(self.nll.values()) else "not clearly beaten by any"
        words += f"; out-of-fold NLL {least:.3f}, {rank} of {len(self.nll)} pairs"
        return words + (f" ({self.nll[plain]:.3f} uncalibrated)" if chosen != plain in self.nll else "")


class Chosen(NamedTuple):
    """A plan with the chosen calibrators, and the comparison.

    Attributes
    ----------
    unseen : list of Unseen
        All rows with the log-odds of models that have not seen them; empty if it was chosen on a sample.
    """

    plan: Plan
    calibration: Calibration
    unseen: list[Unseen]


def given(plan: Plan) -> Calibration:
    """Calibration of a plan that leaves nothing to choose."""
    return Calibration(name_of(plan.internal_calibration), name_of(plan.external_calibration))


def choose(plan: Plan, forest: Forest, rows: Rows, crossed: Sequence[CrossFit], rng: Any) -> Chosen:
    """Choose the calibrators that the plan leaves open, one pair for all nodes of all trees.

    Every candidate inside is fitted to the out-of-fold scores of the nodes without the fold of the row, the
    log-probabilities of the classes are composed, and every candidate outside is fitted to those of the other
    folds. The pair of least NLL is chosen; no calibration is preferred where the difference is noise.

    Parameters
    ----------
    rows : Rows
        All rows, in folds.
    crossed : sequence of CrossFit
        The nodes of all trees, with members and out-of-fold scores.
    """
    most = max(_MOST_PAIRS // forest.n_classes, _FEWEST_ROWS)
    sample = stratified(rows.codes, np.arange(len(rows)), most, rng)
    scores = _RawScores(plan, forest, rows, crossed, sample)
    judged = rows.take(scores.order)
    rows_per_class = len(rows) / rows.n_classes
    losses: dict[tuple[str, str], FloatArray] = {}
    inside, outside = _candidates(plan, rows_per_class)
    for internal in inside:
        log_proba = out_of_fold_log_proba(plan, scores.unseen(internal))
        for external in outside:
            losses[name_of(internal), name_of(external)] = _losses(external, judged, log_proba)
    weight = np.ones(len(judged)) if judged.weight is None else judged.weight
    best = _best(losses, weight, rows_per_class)
    internal, external = next((i, e) for i in inside for e in outside if (name_of(i), name_of(e)) == best)
    total = max(float(weight.sum()), np.finfo(float).tiny)
    nll = {pair: float(weight @ loss) / total for pair, loss in losses.items()}
    return Chosen(
        replace(plan, internal_calibration=internal, external_calibration=external),
        Calibration(*best, nll, len(judged)),
        scores.unseen(internal) if len(sample) == len(rows) else [],
    )


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


def _best(
    losses: dict[tuple[str, str], FloatArray], weight: FloatArray, rows_per_class: float
) -> tuple[str, str]:
    """The pair to take; with few rows, another than the first only if it is much better."""
    capped = {pair: np.minimum(loss, _MOST_LOSS) for pair, loss in losses.items()}
    best = best_of(capped, weight, _MARGIN_OF_FEW if rows_per_class < _FEW_ROWS else _MARGIN)
    first = next(iter(losses))
    is_little = float(weight @ capped[best]) > _SHARE_OF_VERY_FEW * float(weight @ capped[first])
    return first if rows_per_class < _VERY_FEW_ROWS and is_little else best


class _RawScores:
    """Log-odds at all nodes of sampled rows, by models that have not seen them, before any calibration."""

    def __init__(
        self, plan: Plan, forest: Forest, rows: Rows, crossed: Sequence[CrossFit], sample: IntArray
    ) -> None:
        assert rows.fold is not None
        self._crossed = crossed
        self._model = FittedForest(forest, GivenScores(), plan.pooling)
        self._rows = [sample[rows.fold[sample] == f] for f in range(rows.n_folds)]
        self._log_odds = [
            [each.fitted.members[f].log_odds(rows.features_of(mine)) for each in crossed]
            for f, mine in enumerate(self._rows)
        ]
        self.order: IntArray = np.concatenate(self._rows)

    def unseen(self, calibrator: BinaryCalibrator | None) -> list[Unseen]:
        """The rows of each fold, with log-odds that are calibrated without the fold."""
        return [
            Unseen(mine, self._model, self._calibrated(f, calibrator)) for f, mine in enumerate(self._rows)
        ]

    def _calibrated(self, fold: int, calibrator: BinaryCalibrator | None) -> FloatArray:
        parts = self._log_odds[fold]
        if calibrator is not None:
            parts = [
                each.recalibrated(part, calibrator, fold)
                for each, part in zip(self._crossed, parts, strict=True)
            ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _candidates(
    plan: Plan, rows_per_class: float
) -> tuple[list[BinaryCalibrator | None], list[MulticlassCalibrator | None]]:
    """Candidates inside and outside; the only one where it is given."""
    internal, external = plan.internal_calibration, plan.external_calibration
    inside, outside = [internal], [external]
    few = rows_per_class < _VERY_FEW_ROWS
    if isinstance(internal, Auto):
        names = [NONE] if few else internal.candidates
        if not plan.learner.gives_probabilities:
            names = [name for name in internal.candidates if name != NONE]
        inside = [None if name == NONE else BINARY.create(name) for name in names]
    if isinstance(external, AutoCalibration):
        names = [NONE, "temperature"] if few else external.candidates
        names = names if rows_per_class >= 2 else [NONE]  # else some class is unknown without the fold
        outside = [None if name == NONE else MULTICLASS.create(name) for name in names]
    return inside, outside


def _losses(calibrator: MulticlassCalibrator | None, rows: Rows, log_proba: FloatArray) -> FloatArray:
    """Negative log-probability of each row's class, calibrated without the fold of the row."""
    loss = -log_proba[np.arange(len(rows)), rows.codes].astype(np.float64)
    if calibrator is None:
        return loss
    assert rows.fold is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for f in range(rows.n_folds):
            inside, outside = np.flatnonzero(rows.fold == f), np.flatnonzero(rows.fold != f)
            fitted = fit_calibrator(calibrator, rows.take(outside), log_proba[outside])
            if fitted is not None and len(inside):
                answer = fitted.predict_log_proba(log_proba[inside])
                loss[inside] = -answer[np.arange(len(inside)), rows.codes[inside]]
                calibrator = fitted.with_settings_kept()  # the first choice of settings serves all folds
    return loss


def name_of(calibrator: Any) -> str:
    """Name of a calibrator in its registry; of a user's own class, the name of the class."""
    if calibrator is None or isinstance(calibrator, str):
        return calibrator or NONE
    for registry in (BINARY, MULTICLASS):
        for name in registry.names():
            if registry.get(name) is type(calibrator):
                return name
    return type(calibrator).__name__
