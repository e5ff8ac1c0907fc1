"""The choice of calibration: pairs of calibrators, at the nodes and outside, compared by out-of-fold NLL."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.best_of import best_of
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass.auto import CANDIDATES, AutoCalibration
from dichotomies.calibrators.multiclass.base import HeldOut
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import JoinedScorer
from dichotomies.rows.folds import calibration_fold, stratified
from dichotomies.training.external import NONE, Calibration, Unseen, name_of
from dichotomies.training.plan import most_calibration_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.calibrators.binary import BinaryCalibrator, ScoreMaps
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.rows import Rows
    from dichotomies.training.cross_fitting import CrossFit
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

#: Rows times classes that calibrators are compared on, and the fewest rows that are taken if there are many
#: classes; beyond, a stratified sample.
_MOST_PAIRS, _FEWEST_ROWS = 2**19, 2_000
#: Classes beyond which a tree is to be searched, which no calibration outside allows; and the share of the
#: NLL that calibration outside must save there.
_MANY_CLASSES, _WORTH_SEARCHING = 1_000, 0.01
#: Candidates outside, the simplest first; scales of a tree's log-odds leave nothing to temperature scaling.
_OUTSIDE, _OUTSIDE_MANY = (NONE, "vector-odds"), (NONE, "vector")
#: Candidates that are compared with the best pair alone, and the fewest classes that they are tried on.
_NESTED, _FEWEST_CLASSES = ("nested", "vector-nested"), 50
#: Mean number of rows of a class below which calibrators that fit every node by itself are not candidates:
#: most nodes have few rows.
_FEW_ROWS_OF_NODES = 2.5
#: Mean number of rows of a class below which every candidate inside is tried with every one outside, since
#: the NLLs of the nodes are too noisy to leave any out; and accuracy is compared without calibration
#: outside as well: biases that few rows of a class suggest do not hold for other rows.
_FEW_ROWS = 10
#: Share of the NLL of all nodes that a calibrator inside must save to be preferred to a simpler one: what the
#: simpler one leaves, calibration outside can correct in part.
_WORTH_FREEDOM = 0.05
#: Least share of the NLL that one calibration inside must save if it has a lower accuracy than another.
_WORTH_ERRORS = 0.1
#: Mean number of rows of a class below which nothing is calibrated outside: most rows are of classes that the
#: model of the other folds does not know.
_FEWEST_OF_A_CLASS = 1.5
#: More of a row's loss does not count in the comparison: a single row that naive Bayes holds for impossible
#: would make the standard error larger than any gain.
_MOST_LOSS = 100.0


class Chosen(NamedTuple):
    """A plan with the chosen calibrators, and the comparison.

    Attributes
    ----------
    external : MulticlassCalibrator or None
        The chosen one, fitted to all rows; None if it was chosen on a sample.
    """

    plan: Plan
    calibration: Calibration
    external: MulticlassCalibrator | None


def choose(plan: Plan, forest: Forest, rows: Rows, crossed: Sequence[CrossFit], rng: Any) -> Chosen:
    """Choose the calibrators that the plan leaves open, one pair for all nodes of all trees.

    Every candidate inside is fitted to the out-of-fold scores of the nodes without the fold of the row. By
    Proposition 1 the nodes' NLLs tell which is best; one with more freedom must save a twentieth. For that
    one, and for no calibration inside, or for all where rows are few, the log-probabilities of the classes
    are composed, and every candidate outside is fitted to those of the other folds. The pair of least NLL is
    chosen, with three preferences. Where the difference is noise, what would be taken inside if nothing were
    calibrated outside: nothing, unless that is worse by more than noise. Nothing that costs accuracy
    inside, beyond noise, unless it saves a tenth of the NLL, and as large a share as it costs. Calibration
    outside, unless nothing is clearly better. One tree of many classes has nothing outside unless that
    saves a hundredth, so that it can be searched. To the loss of each pair one imaginary row of its least
    probable class is added: `_Comparison`. Where classes have few rows, other rules apply: `_FEW_ROWS` and
    the constants beside it.

    Parameters
    ----------
    rows : Rows
        All rows, in folds.
    crossed : sequence of CrossFit
        The nodes of all trees, with out-of-fold scores.
    """
    most = max(_MOST_PAIRS // forest.n_classes, _FEWEST_ROWS)
    most = min(most, most_calibration_rows(plan, forest, rows))
    sample = stratified(rows.codes, np.arange(len(rows)), most, rng)
    inside, outside = _candidates(plan, rows)
    few_rows = len(rows) < _FEW_ROWS * rows.n_classes
    comparison = _Comparison(rows.take(sample), few_rows=few_rows)
    screening = _Screening.of(inside, crossed)
    compared = inside if few_rows else screening.finalists(inside)
    for name in compared:
        planned = [each.planned(replace(plan, internal_calibration=inside[name])) for each in crossed]
        unseen = unseen_by(planned, forest, plan.pooling, sample, screening.fold_maps.get(name))
        comparison.add(name, unseen.log_proba(plan.n_jobs))
        for external in filter(None, outside.values()):
            comparison.calibrate(name, external)
    best = comparison.best(outside)
    if _may_be_nested(plan, rows):
        nested = {name: MULTICLASS.create(name) for name in _NESTED}
        best = comparison.better(best, list(nested.values()))
        outside |= nested
    note = ""
    if len(forest.trees) == 1 and rows.n_classes > _MANY_CLASSES:
        searchable = comparison.best([NONE]) if NONE in outside else best
        if searchable != best and comparison.is_worth_searching(searchable, best):
            best, note = searchable, "so that the most probable classes can be searched for"
    chosen = replace(plan, internal_calibration=inside[best[0]], external_calibration=outside[best[1]])
    nll = comparison.nll(outside)
    if len(forest.trees) == 1 and NONE in outside:
        weight = max(float(rows.class_weight.sum()), np.finfo(float).tiny)
        nll |= {(name, NONE): each / weight for name, each in screening.nll.items() if name not in compared}
    calibration = Calibration(*best, nll, len(sample), note)
    if len(sample) < len(rows):
        return Chosen(chosen, calibration, None)
    return Chosen(chosen, calibration, comparison.fitted.get(best))


def unseen_by(
    crossed: Sequence[CrossFit],
    forest: Forest,
    pooling: str,
    sample: IntArray,
    fold_maps: Sequence[Sequence[ScoreMaps]] | None = None,
) -> Unseen:
    """Rows of a sample, and the forest that scores them as new ones.

    Parameters
    ----------
    crossed : sequence of CrossFit
        The nodes of each tree.
    fold_maps : sequence, optional
        For each of them the maps of each fold, where they are at hand.
    """
    maps = [None] * len(crossed) if fold_maps is None else fold_maps
    parts = [each.unseen_scorer(mine) for each, mine in zip(crossed, maps, strict=True)]
    scorer = parts[0] if len(parts) == 1 else JoinedScorer(parts, [each.task.n_nodes for each in crossed])
    return Unseen(sample, FittedForest(forest, scorer, pooling), sample)


class _Screening(NamedTuple):
    """Calibrators of the nodes, fitted without each fold of the rows, and the NLL of all nodes with them.

    Attributes
    ----------
    fold_maps : dict
        By name, for each of several trees, the maps of each fold.
    nll : dict
        Sum over the trees, where there is something to choose.
    """

    fold_maps: dict[str, list[list[ScoreMaps]]]
    nll: dict[str, float]

    @classmethod
    def of(cls, inside: dict[str, BinaryCalibrator | None], crossed: Sequence[CrossFit]) -> _Screening:
        maps = {
            name: [each.fold_maps(calibrator) for each in crossed]
            for name, calibrator in inside.items()
            if calibrator is not None
        }
        compared = maps if len(maps) > 1 else {}
        nll = {
            name: sum(each.nll_with(mine) for each, mine in zip(crossed, by_tree, strict=True))
            for name, by_tree in compared.items()
        }
        return cls(maps, nll)

    def finalists(self, inside: Iterable[str]) -> list[str]:
        """No calibration, if that is a candidate, and the best of the others; else the best two.

        A candidate must save a twentieth of the NLL of each that comes before it.
        """
        cost = {
            name: self.nll.get(name, 0.0) * (1 - _WORTH_FREEDOM) ** -i
            for i, name in enumerate(self.fold_maps)
        }
        others = sorted(cost, key=cost.__getitem__)
        return [NONE, *others[:1]] if NONE in inside else others[:2]


class _Comparison:
    """Losses of the rows by pair of calibrators, and the calibrators outside fitted to all rows."""

    def __init__(self, rows: Rows, *, few_rows: bool = False) -> None:
        self._rows = rows
        self._few_rows = few_rows
        self._weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self._log_proba: dict[str, FloatArray] = {}
        self._found: dict[tuple[str, str], HeldOut] = {}
        self.fitted: dict[tuple[str, str], MulticlassCalibrator] = {}

    def add(self, internal: str, log_proba: FloatArray) -> None:
        """Add log-probabilities of the classes with calibrated nodes, none of them outside."""
        self._log_proba[internal] = log_proba
        self._found[internal, NONE] = HeldOut.empty(len(log_proba))
        self._found[internal, NONE].put(slice(None), log_proba, self._rows.codes)

    def calibrate(self, internal: str, external: MulticlassCalibrator) -> None:
        """Add a calibration of the log-probabilities, each row's by the other folds."""
        rows, log_proba, pair = self._rows, self._log_proba[internal], (internal, name_of(external))
        assert rows.fold is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if not self._weight.any():
                self._found[pair] = self._found[internal, NONE]
                return
            self.fitted[pair] = clone(external)
            self._found[pair] = self.fitted[pair].fit_held_out(
                log_proba, rows.codes, calibration_fold(rows.fold), rows.weight
            )

    def nll(self, outside: Iterable[str]) -> dict[tuple[str, str], float]:
        """NLL of each pair with one of the candidates outside."""
        return {pair: self._mean(found.loss) for pair, found in self._found.items() if pair[1] in outside}

    def _charged(self, found: HeldOut) -> FloatArray:
        """Losses with a share each of one more row, of the least probable class there is.

        By Laplace's rule what n rows have not shown happens about once in n.
        """
        largest = np.max(found.largest, initial=0.0, where=self._weight > 0)
        share = min(largest, _MOST_LOSS) / (self._weight.sum() + 1)
        return np.asarray(np.minimum(found.loss, _MOST_LOSS) + share)

    def best(self, outside: Iterable[str]) -> tuple[str, str]:
        """The pair to take."""
        losses = {pair: self._charged(found) for pair, found in self._found.items() if pair[1] in outside}
        best = {pair: losses[pair] for name in self._log_proba for pair in [self._best_outside(name, losses)]}
        kept = self._accurate(best, {pair: pair for pair in best})
        if self._few_rows:
            before = self._accurate(best, {pair: (pair[0], NONE) for pair in best})
            kept = [pair for pair in kept if pair in before] or kept
        return best_of({pair: best[pair] for pair in self._preferred_first(kept)}, self._weight)

    def better(self, pair: tuple[str, str], calibrators: Iterable[MulticlassCalibrator]) -> tuple[str, str]:
        """The pair, or another calibrator outside in its place that is clearly better."""
        for each in calibrators:
            self.calibrate(pair[0], each)
        pairs = [pair, *((pair[0], name_of(each)) for each in calibrators)]
        return best_of({each: self._charged(self._found[each]) for each in pairs}, self._weight)

    def is_worth_searching(self, searchable: tuple[str, str], best: tuple[str, str]) -> bool:
        """Return True if the first pair has nearly the NLL of the other."""
        losses = (self._mean(self._charged(self._found[pair])) for pair in (searchable, best))
        return next(losses) <= (1 + _WORTH_SEARCHING) * next(losses)

    def _preferred_first(self, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Put the pair first to which ties go: the one to take if nothing were calibrated outside."""
        alone = {pair: self._charged(self._found[pair[0], NONE]) for pair in pairs}
        preferred = best_of(alone, self._weight)
        return sorted(pairs, key=lambda pair: pair != preferred)

    def _best_outside(self, internal: str, losses: dict[tuple[str, str], FloatArray]) -> tuple[str, str]:
        """The pair to take with this calibration of the nodes."""
        calibrated = [pair for pair in losses if pair[0] == internal and pair[1] != NONE]
        first = min(calibrated, key=lambda pair: self._mean(losses[pair]), default=(internal, NONE))
        pairs = [first, (internal, NONE)] if (internal, NONE) in losses else [first]
        return best_of({pair: losses[pair] for pair in pairs}, self._weight)

    def _accurate(
        self, losses: dict[tuple[str, str], FloatArray], judged: dict[tuple[str, str], tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Pairs that are as accurate as any other, but for noise, or have a much lower NLL.

        They must save a tenth of the NLL, or the share of right answers that they lose if that is more.

        Parameters
        ----------
        judged : dict
            Pair whose errors count for each.
        """
        misses = {pair: (~self._found[judged[pair]].is_best).astype(np.float64) for pair in losses}
        first = min(losses, key=lambda pair: (self._mean(misses[pair]), self._mean(losses[pair])))
        right = {pair: 1 - self._mean(each) for pair, each in misses.items()}

        def worth(pair: tuple[str, str]) -> float:
            """NLL below which a pair may have a lower accuracy."""
            kept = right[pair] / max(right[first], np.finfo(float).tiny)
            return min(1 - _WORTH_ERRORS, kept) * self._mean(losses[first])

        return [
            pair
            for pair, loss in losses.items()
            if self._mean(loss) < worth(pair)
            or best_of({pair: misses[pair], first: misses[first]}, self._weight) == pair
        ]

    def _mean(self, loss: FloatArray) -> float:
        return float(self._weight @ loss) / max(float(self._weight.sum()), np.finfo(float).tiny)


def _may_be_nested(plan: Plan, rows: Rows) -> bool:
    """Return True if calibration outside is open, and there are many classes with enough rows."""
    external = plan.external_calibration
    is_open = isinstance(external, AutoCalibration) and external.candidates == CANDIDATES
    few = len(rows) < _FEW_ROWS * rows.n_classes
    return is_open and not few and _FEWEST_CLASSES <= rows.n_classes <= _MANY_CLASSES


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
        elif rows_per_class < _FEW_ROWS_OF_NODES:
            inside = {name: it for name, it in inside.items() if it is None or not it.nodes_are_independent}
    if isinstance(external, AutoCalibration):
        names = [NONE]
        if rows_per_class >= _FEWEST_OF_A_CLASS:
            default = _OUTSIDE_MANY if rows.n_classes > _MANY_CLASSES else _OUTSIDE
            names = list(default if external.candidates == CANDIDATES else external.candidates)
        outside = {name: None if name == NONE else MULTICLASS.create(name) for name in names}
    return inside, outside
