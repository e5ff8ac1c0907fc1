"""Events of the calibration metrics: a binary score, the top label, the top k, or each class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._common.validation import row_weights
from dichotomies.metrics import _input
from dichotomies.metrics.binning import Bins, ClassBinsBuilder, binned, stacked
from dichotomies.metrics.facts import RowFacts, ScoredEvents, probability_blocks

KINDS = ("top-label", "top-k", "class-wise")


class EventQuery(NamedTuple):
    """The arguments that all calibration metrics share: predictions, and the kind of event."""

    y_true: npt.ArrayLike
    y_proba: npt.ArrayLike
    labels: npt.ArrayLike | None
    sample_weight: npt.ArrayLike | None
    kind: str | None
    k: int

    @property
    def is_classwise(self) -> bool:
        """True for metrics with one value per class."""
        return self.kind == "class-wise"

    def events(self) -> ScoredEvents:
        """Return the events, for kinds with one event per row."""
        self._check_kind()
        if np.ndim(self.y_proba) == 1:
            return self._binary_events()
        return self._facts(self.k).events(self.k if self.kind == "top-k" else None)

    def bins(self, n_bins: int, strategy: str) -> Bins:
        """Return the binned events, with a column per class for "class-wise"."""
        if not self.is_classwise:
            return binned(self.events(), n_bins, strategy)
        if strategy != "uniform":
            return stacked([binned(events, n_bins, strategy) for events in self.class_events()])
        matrix, codes, weight = self._checked_matrix()
        builder = ClassBinsBuilder(matrix.shape[1], n_bins)
        for rows, block in probability_blocks(matrix, is_log=False):
            builder.add(block.proba, codes[rows], weight[rows])
        return builder.bins()

    def class_events(self) -> Iterator[ScoredEvents]:
        """Yield, for every class, the events that a row is of that class."""
        matrix, codes, weight = self._checked_matrix()
        weighed = weight > 0
        matrix, codes, weight = matrix[weighed], codes[weighed], weight[weighed]
        for c in range(matrix.shape[1]):
            score = np.minimum(np.asarray(matrix[:, c], dtype=np.float64), 1.0)
            yield ScoredEvents(score, codes == c, weight)

    def _binary_events(self) -> ScoredEvents:
        score = _input.checked_scores(self.y_proba)
        columns = _input.column_labels(self.y_true, score, self.labels)
        happened = _input.class_codes(self.y_true, columns) == 1
        _input.check_same_length(happened, score)
        weight = row_weights(self.sample_weight, len(score))
        weighed = weight > 0
        return ScoredEvents(score[weighed], happened[weighed], weight[weighed])

    def _checked_matrix(self) -> tuple[FloatArray, IntArray, FloatArray]:
        self._check_kind()
        facts = self._facts(1)  # also validates the rows, at no extra cost
        return _input.checked_matrix(self.y_proba), facts.codes, facts.weight

    def _facts(self, k: int) -> RowFacts:
        return RowFacts.from_predictions(
            self.y_true, self.y_proba, labels=self.labels, sample_weight=self.sample_weight, top_k=(k,)
        )

    def _check_kind(self) -> None:
        _input.check_k(self.k)
        if self.kind is None:
            return
        _input.check_choice("kind", self.kind, KINDS)
        if np.ndim(self.y_proba) == 1:
            raise ValueError(
                f"y_proba has one score per row, of one event; kind={self.kind!r} needs a column per class."
            )
