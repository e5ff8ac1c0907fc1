"""The choice of calibration: pairs of calibrators, at the nodes and outside, compared by out-of-fold NLL."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.best_of import best_of
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass.auto import AutoCalibration
from dichotomies.calibrators.multiclass.base import HeldOut
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import GivenScores
from dichotomies.rows.folds import stratified
from dichotomies.training.external import (
    NONE,
    Calibration,
    Unseen,
    fit_calibrator,
    name_of,
    out_of_fold_log_proba,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.calibrators.binary import BinaryCalibrator
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.rows import Rows
    from dichotomies.training.cross_fitting import CrossFit
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

#: Rows times classes that calibrators are compared on, and the fewest rows that are taken if there are many
#: classes; beyond, a stratified sample.
_MOST_PAIRS, _FEWEST_ROWS = 2**19, 2_000
#: Classes beyond which vector scaling is on log-probabilities, so that best classes can be searched for.
_MANY_CLASSES = 1_000
#: Mean number of rows of a class below which calibrators that fit every node by itself are not candidates:
#: most nodes have few rows. With very few, a pair must not lower the accuracy out of fold beyond noise.
_FEW_ROWS, _VERY_FEW_ROWS = 6, 4
#: More of a row's loss does not count in the comparison: a single row that naive Bayes holds for impossible
#: would make the standard error larger than any gain.
_MOST_LOSS = 100.0


class Chosen(NamedTuple):
    """A plan with the chosen calibrators, and the comparison.

    Attributes
    ----------
    unseen : list of Unseen
        All rows with the log-odds of models that have not seen them; empty if it was chosen on a sample.
    external : MulticlassCalibrator or None
        The chosen one, fitted to those rows.
    """

    plan: Plan
    calibration: Calibration
    unseen: list[Unseen]
    external: MulticlassCalibrator | None


def choose(plan: Plan, forest: Forest, rows: Rows, crossed: Sequence[CrossFit], rng: Any) -> Chosen:
    """Choose the calibrators that the plan leaves open, one pair for all nodes of all trees.

    Every candidate inside is fitted to the out-of-fold scores of the nodes without the fold of the row, and
    the log-probabilities of the classes are composed. For no calibration inside and the best of the others,
    every candidate outside is then fitted to those of the other folds. The pair of least NLL is chosen, but
    for no calibration inside where the difference is noise. Outside there is no such preference: vector
    scaling shrinks to no change by itself, and bounds probabilities that no row supports.

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
    inside, outside = _candidates(plan, rows)
    comparison = _Comparison(plan, rows.take(scores.order))
    unseen = {name: scores.unseen(internal) for name, internal in inside.items()}
    for name, each in unseen.items():
        comparison.add(name, out_of_fold_log_proba(plan, each))
    for name in comparison.finalists() if any(outside.values()) else ():
        for external in filter(None, outside.values()):
            comparison.calibrate(name, external)
    best = comparison.best(outside)
    chosen = replace(plan, internal_calibration=inside[best[0]], external_calibration=outside[best[1]])
    calibration = Calibration(*best, comparison.nll(outside), len(sample))
    if len(sample) < len(rows):
        return Chosen(chosen, calibration, [], None)
    return Chosen(chosen, calibration, unseen[best[0]], comparison.fitted.get(best))


class _Comparison:
    """Losses of the rows by pair of calibrators, and the calibrators outside fitted to all rows."""

    def __init__(self, plan: Plan, rows: Rows) -> None:
        self._plan, self._rows = plan, rows
        self._weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self._log_proba: dict[str, FloatArray] = {}
        self._found: dict[tuple[str, str], HeldOut] = {}
        self.fitted: dict[tuple[str, str], MulticlassCalibrator] = {}

    def add(self, internal: str, log_proba: FloatArray) -> None:
        """Add log-probabilities of the classes with calibrated nodes, none of them outside."""
        self._log_proba[internal] = log_proba
        self._found[internal, NONE] = HeldOut.empty(len(log_proba))
        self._found[internal, NONE].put(slice(None), log_proba, self._rows.codes)

    def finalists(self) -> list[str]:
        """No calibration of the nodes, if that is a candidate, and the best of the others."""
        by_nll = sorted(self._log_proba, key=lambda name: self._mean(self._found[name, NONE].loss))
        others = [name for name in by_nll if name != NONE]
        return [NONE, *others[:1]] if NONE in by_nll else others[:2]

    def calibrate(self, internal: str, external: MulticlassCalibrator) -> None:
        """Add a calibration of the log-probabilities, each row's by the other folds."""
        rows, log_proba, pair = self._rows, self._log_proba[internal], (internal, name_of(external))
        assert rows.fold is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = fit_calibrator(external, rows, log_proba)
            if fitted is None:
                self._found[pair] = self._found[internal, NONE]
                return
            self.fitted[pair] = fitted
            self._found[pair] = fitted.held_out(log_proba, rows.codes, rows.fold, rows.weight)

    def _compared(self, outside: Iterable[str]) -> dict[tuple[str, str], FloatArray]:
        return {pair: found.loss for pair, found in self._found.items() if pair[1] in outside}

    def nll(self, outside: Iterable[str]) -> dict[tuple[str, str], float]:
        """NLL of each pair with one of the candidates outside."""
        return {pair: self._mean(loss) for pair, loss in self._compared(outside).items()}

    def best(self, outside: Iterable[str]) -> tuple[str, str]:
        """The pair to take."""
        capped = {pair: np.minimum(loss, _MOST_LOSS) for pair, loss in self._compared(outside).items()}
        first, is_few = next(iter(capped)), len(self._rows) < _VERY_FEW_ROWS * self._rows.n_classes
        kept = [pair for pair in capped if not (is_few and self._is_less_accurate(pair, first))]
        by_nll = sorted(kept, key=lambda pair: self._mean(capped[pair]))
        by_internal = {pair[0]: pair for pair in reversed(by_nll)}
        best = [by_internal[name] for name in self._log_proba if name in by_internal]
        return best_of({pair: capped[pair] for pair in best}, self._weight)

    def _is_less_accurate(self, pair: tuple[str, str], first: tuple[str, str]) -> bool:
        """True if the most probable class is right less often than by the first pair, beyond noise."""
        misses = {each: (~self._found[each].is_best).astype(np.float64) for each in (pair, first)}
        return pair != first and best_of(misses, self._weight) == first

    def _mean(self, loss: FloatArray) -> float:
        return float(self._weight @ loss) / max(float(self._weight.sum()), np.finfo(float).tiny)


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
    plan: Plan, rows: Rows
) -> tuple[dict[str, BinaryCalibrator | None], dict[str, MulticlassCalibrator | None]]:
    """Candidates inside and outside by name, the simplest first; the only one where it is given."""
    internal, external = plan.internal_calibration, plan.external_calibration
    rows_per_class = len(rows) / rows.n_classes
    inside, outside = {name_of(internal): internal}, {name_of(external): external}
    if isinstance(internal, Auto):
        inside = {name: None if name == NONE else BINARY.create(name) for name in internal.candidates}
        if not plan.learner.gives_probabilities:
            inside.pop(NONE, None)
        elif rows_per_class < _FEW_ROWS:
            inside = {name: it for name, it in inside.items() if it is None or not it.nodes_are_independent}
    if isinstance(external, AutoCalibration):
        names = external.candidates if rows_per_class >= 2 else [NONE]  # else some class is unknown elsewhere
        if rows.n_classes > _MANY_CLASSES:
            names = ["vector" if name == "vector-odds" else name for name in names]
        outside = {name: None if name == NONE else MULTICLASS.create(name) for name in names}
    return inside, outside
