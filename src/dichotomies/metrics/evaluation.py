"""All metrics of class probabilities with confidence intervals, from one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.chunks import predictions, rows_within
from dichotomies._common.typing import FloatArray, LabelArray, Matrix
from dichotomies._common.validation import row_weights
from dichotomies.metrics import _input
from dichotomies.metrics.binning import Bins, ClassBinsBuilder, binned
from dichotomies.metrics.bootstrap import Interval, interval_of, random_batches, resampled_weights
from dichotomies.metrics.calibration import debiased_expected_error, expected_error, maximum_error
from dichotomies.metrics.decomposition import decomposed, smooth_error
from dichotomies.metrics.facts import RowFacts, probability_blocks, reduced_block
from dichotomies.metrics.reliability import ReliabilityCurve, curve_of
from dichotomies.metrics.scores import nll_of

#: Titles of the metrics by name; {k} is expanded for every k of `top_k`.
TITLES = {
    "nll": "negative log-likelihood (NLL)",
    "brier": "Brier score",
    "accuracy": "accuracy",
    "top_{k}_accuracy": "top-{k} accuracy",
    "ece": "calibration error (ECE)",
    "ece_equal_mass": "  in bins of equal mass",
    "ece_debiased": "  debiased",
    "ece_smooth": "  by a kernel (smooth)",
    "mce": "  largest, in bins of equal mass",
    "ece_top_{k}": "  of the {k} most probable classes",
    "ece_class_wise": "  class by class",
    "nll_top_label": "NLL of being right",
    "nll_top_label_calibration": "  calibration",
    "nll_top_label_refinement": "  refinement",
    "brier_top_label": "squared error of being right",
    "brier_top_label_calibration": "  calibration",
    "brier_top_label_refinement": "  refinement",
}


def titles_for(top_k: tuple[int, ...]) -> dict[str, str]:
    """Return names and titles of the metrics, in display order."""
    titles = {}
    for name, title in TITLES.items():
        for k in top_k if "{k}" in name else top_k[:1]:
            titles[name.format(k=k)] = title.format(k=k)
    return titles


def range_of(name: str) -> tuple[float, float]:
    """Return the lower and upper bound of a metric."""
    if name == "ece_debiased":  # negative if there is no evidence of miscalibration
        return -1.0, 1.0
    is_share = "accuracy" in name or name.startswith(("ece", "mce"))
    return 0.0, 1.0 if is_share else float("inf")


def row_metrics(facts: RowFacts, n_bins: int) -> dict[str, float]:
    """Compute every metric that depends on `RowFacts` alone."""
    events = facts.events()
    uniform, equal_mass = (binned(events, n_bins, strategy) for strategy in ("uniform", "quantile"))
    values = {
        "nll": nll_of(facts),
        "brier": facts.mean(facts.brier),
        "accuracy": facts.mean(facts.rank == 0),
        "ece": float(expected_error(uniform)),
        "ece_equal_mass": float(expected_error(equal_mass)),
        "ece_debiased": float(debiased_expected_error(uniform)),
        "ece_smooth": smooth_error(events),
        "mce": float(maximum_error(equal_mass)),
    }
    for k in facts.top_k:
        values[f"top_{k}_accuracy"] = facts.mean(facts.rank < k)
        values[f"ece_top_{k}"] = float(expected_error(binned(facts.events(k), n_bins, "uniform")))
    for loss in ("nll", "brier"):
        total, calibration, refinement = decomposed(events, loss)
        name = f"{loss}_top_label"
        values |= {name: total, f"{name}_calibration": calibration, f"{name}_refinement": refinement}
    return values


#: Number of batches of rows that are resampled in place of rows for the class-wise error.
_BATCHES = 20


@dataclass(frozen=True, repr=False)
class Evaluation:
    """All metrics of a model on some rows; prints as a table.

    Returned by `evaluate`, or computed from predictions by the class methods.

    Attributes
    ----------
    facts : RowFacts
        Per-row quantities.
    labels : ndarray of shape (n_classes,)
        The labels of the classes.
    groups : ndarray of shape (n_rows,) or None
        Rows that are resampled together.
    n_bins : int
        Number of bins for the calibration errors.
    n_resamples, confidence_level, random_state : int, float, int
        Settings of the bootstrap.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dichotomies.metrics import evaluate
    >>> X, y = load_digits(return_X_y=True)
    >>> evaluation = evaluate(GaussianNB().fit(X[:1000], y[:1000]), X[1000:], y[1000:])
    >>> round(evaluation.metrics["accuracy"], 3)
    0.793
    >>> estimate, lower, upper = evaluation.intervals["accuracy"]
    >>> round(lower, 2), round(upper, 2)
    (0.77, 0.82)
    """

    facts: RowFacts
    labels: LabelArray
    groups: LabelArray | None
    n_bins: int
    n_resamples: int
    confidence_level: float
    random_state: int
    _class_bins: ClassBinsBuilder

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_proba: npt.ArrayLike,
        *,
        labels: npt.ArrayLike | None = None,
        is_log: bool = False,
        **settings: Any,
    ) -> Evaluation:
        """Evaluate class probabilities.

        Parameters
        ----------
        y_true : array of shape (n_rows,)
            The true labels.
        y_proba : array of shape (n_rows, n_classes) or (n_rows,)
            Class probabilities, or the probability of the second of two classes. Arrays on disk
            (``numpy.memmap``) are read a block at a time.
        labels : array of shape (n_classes,), optional
            The labels of the columns; by default the sorted labels that occur in `y_true`.
        is_log : bool, default=False
            True if `y_proba` holds log-probabilities.
        **settings
            Further parameters of `evaluate`.
        """
        matrix = _input.checked_matrix(y_proba, is_log=is_log)
        columns = _input.column_labels(y_true, y_proba, labels)
        return cls.from_chunks(y_true, [matrix], labels=columns, is_log=is_log, **settings)

    @classmethod
    def from_chunks(
        cls,
        y_true: npt.ArrayLike,
        chunks: Iterable[npt.ArrayLike],
        *,
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        is_log: bool = False,
        top_k: Sequence[int] = (5,),
        n_bins: int = 20,
        n_resamples: int = 200,
        confidence_level: float = 0.95,
        random_state: int = 0,
    ) -> Evaluation:
        """Evaluate class probabilities given in chunks of rows.

        Parameters
        ----------
        y_true : array of shape (n_rows,)
            The true labels of all rows.
        chunks : iterable of arrays of shape (rows of the chunk, n_classes)
            Class probabilities (log-probabilities with `is_log`), in the order of `y_true`.
        labels : array of shape (n_classes,)
            The labels of the columns.
        sample_weight, groups, is_log, top_k, n_bins, n_resamples, confidence_level, random_state
            See `evaluate` and `from_predictions`.
        """
        names = np.asarray(labels)
        codes = _input.class_codes(y_true, names)
        weight = row_weights(sample_weight, len(codes))
        batches, n_batches = random_batches(weight, groups, _BATCHES, random_state)
        builder, wanted = ClassBinsBuilder(len(names), n_bins, n_batches), _input.checked_top_k(top_k)
        parts, done = [], 0
        for chunk in chunks:
            matrix = _input.checked_matrix(chunk, is_log=is_log)
            _check_chunk(matrix, done, len(codes), len(names))
            for within, block in probability_blocks(matrix, is_log=is_log):
                rows = slice(done + within.start, done + within.stop)
                part = reduced_block(block, codes[rows], weight[rows], wanted, first_row=rows.start)
                builder.add(block.proba, codes[rows], weight[rows], batches[rows])
                parts.append(part)
            done += len(matrix)
        if done < len(codes):
            raise ValueError(f"y_true has {len(codes)} rows, but the chunks of probabilities only {done}.")
        members = None if groups is None else np.asarray(groups)
        facts = RowFacts.concatenate(parts)
        return cls(facts, names, members, n_bins, n_resamples, confidence_level, random_state, builder)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The metrics, by name."""
        return {**row_metrics(self.facts, self.n_bins), **_class_wise(self._class_bins.bins())}

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """The metrics by name, with bootstrap confidence intervals.

        Rows, or `groups` if given, are drawn with replacement. Resampling increases calibration errors, so
        the quantiles are shifted to have the estimate as their median (method "centred" of
        `confidence_interval`), and clipped to the metric's range. The class-wise error is resampled by
        batches of rows (20, or the groups if there are fewer), because resampling rows would need all
        probabilities in memory.
        """
        # rows sorted by confidence make every resample nearly sorted
        order = np.argsort(self.facts.confidence, kind="stable")
        ordered = self.facts.rows(order)
        draws = resampled_weights(self.facts.weight, self.groups, self.n_resamples, self.random_state)
        of_rows = [row_metrics(ordered.reweighted(drawn[order]), self.n_bins) for drawn in draws]
        once = np.ones(self._class_bins.n_batches)
        draws = resampled_weights(once, None, self.n_resamples, self.random_state)
        of_classes = [_class_wise(self._class_bins.bins(times)) for times in draws]
        resampled = [rows | classes for rows, classes in zip(of_rows, of_classes, strict=True)]
        return {
            name: self._interval(name, value, np.array([each[name] for each in resampled]))
            for name, value in self.metrics.items()
        }

    def _interval(self, name: str, estimate: float, resampled: FloatArray) -> Interval:
        _, lower, upper = interval_of(estimate, resampled, self.confidence_level, "centred")
        least, most = range_of(name)
        return Interval(estimate, max(lower, least), min(upper, most))

    @property
    def class_bins(self) -> Bins:
        """Equal-width bins of every class against the rest, of shape (n_bins, n_classes)."""
        return self._class_bins.bins()

    @property
    def class_calibration_errors(self) -> FloatArray:
        """Expected calibration error of every class against the rest."""
        return expected_error(self.class_bins)

    def reliability_curve(
        self, *, k: int | None = None, n_bins: int | None = None, strategy: str = "uniform"
    ) -> ReliabilityCurve:
        """Return the reliability curve of the most probable class, or of the `k` most probable.

        Parameters
        ----------
        k : int, optional
            One of the values in `top_k`.
        n_bins : int, optional
            Number of bins; by default that of the metrics.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equal mass.
        """
        bins = binned(self.facts.events(k), self.n_bins if n_bins is None else n_bins, strategy)
        return curve_of(bins, confidence_level=self.confidence_level)

    def class_reliability_curve(self, label: Any) -> ReliabilityCurve:
        """Return the reliability curve of the class `label` against the rest."""
        columns = np.flatnonzero(self.labels == label)
        if len(columns) != 1:
            raise ValueError(f"There is no class {label!r}.")
        return curve_of(self.class_bins.of_class(columns[0]), confidence_level=self.confidence_level)

    def __repr__(self) -> str:
        return f"<Evaluation of {len(self.facts):,} rows, {len(self.labels):,} classes; print it to see it>"

    def __str__(self) -> str:
        titles = titles_for(self.facts.top_k)
        width = max(map(len, titles.values()))
        level = f"{self.confidence_level:.0%} interval"
        rows = "1 row" if len(self.facts) == 1 else f"{len(self.facts):,} rows"
        lines = [f"{rows}, {len(self.labels):,} classes".ljust(width + 12) + level]
        for name, title in titles.items():
            estimate, lower, upper = self.intervals[name]
            lines.append(f"{title:<{width}}  {estimate:8.4f}  {lower:.4f} to {upper:.4f}")
        return "\n".join(lines)


def _class_wise(bins: Bins) -> dict[str, float]:
    return {"ece_class_wise": float(np.mean(expected_error(bins)))}


def _check_chunk(matrix: FloatArray, done: int, n_rows: int, n_classes: int) -> None:
    if matrix.shape[1] != n_classes:
        raise ValueError(f"A chunk has {matrix.shape[1]} columns; there are {n_classes} classes.")
    if done + len(matrix) > n_rows:
        raise ValueError(f"There are more rows of probabilities than the {n_rows} labels in y_true.")


#: Bytes of class probabilities predicted at a time: enough for several of the classifier's own chunks.
_CHUNK_BYTES = 128 * 2**20
_MAX_ROWS = 65_536


def evaluate(
    classifier: Any,
    X: Matrix,
    y: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    top_k: Sequence[int] = (5,),
    n_bins: int = 20,
    n_resamples: int = 200,
    confidence_level: float = 0.95,
    random_state: int = 0,
    chunk_rows: int | None = None,
) -> Evaluation:
    """Evaluate a fitted classifier: all metrics with confidence intervals.

    Probabilities are predicted in chunks and reduced to a few numbers per row, so memory does not grow with
    rows times classes.

    Parameters
    ----------
    classifier : fitted classifier
        Any classifier with ``classes_`` and ``predict_log_proba`` or ``predict_proba``.
    X : array, sparse matrix or data frame of shape (n_rows, n_features)
        Held-out rows.
    y : array of shape (n_rows,)
        Their labels. Raises for labels that are not in ``classes_``.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.
    groups : array of shape (n_rows,), optional
        Group of each row, such as the person it comes from; the bootstrap then draws whole groups.
    top_k : sequence of int, default=(5,)
        Values of k for top-k accuracy and calibration.
    n_bins : int, default=20
        Number of bins for the calibration errors.
    n_resamples : int, default=200
        Number of bootstrap resamples.
    confidence_level : float, default=0.95
        Confidence level of the intervals.
    random_state : int, default=0
        Seed of the bootstrap.
    chunk_rows : int, optional
        Rows per chunk; by default as many as give 128 MiB of probabilities.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.metrics import evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(random_state=0).fit(X[::2], y[::2])
    >>> evaluation = evaluate(clf, X[1::2], y[1::2], top_k=[2])
    >>> round(evaluation.metrics["top_2_accuracy"], 2)
    1.0
    """
    if not hasattr(classifier, "classes_"):
        raise ValueError(f"{type(classifier).__name__} has no classes_: evaluate needs a fitted classifier.")
    is_log = hasattr(classifier, "predict_log_proba")
    if not (is_log or hasattr(classifier, "predict_proba")):
        raise TypeError(
            f"{type(classifier).__name__} gives no probabilities: evaluate needs predict_log_proba or "
            "predict_proba."
        )
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows must be a whole number, 1 or more, got {chunk_rows}.")
    predict = classifier.predict_log_proba if is_log else classifier.predict_proba
    step = chunk_rows or rows_within(_CHUNK_BYTES, len(classifier.classes_), at_most=_MAX_ROWS)
    return Evaluation.from_chunks(
        y,
        (predicted for _, predicted in predictions(predict, X, step)),
        labels=classifier.classes_,
        sample_weight=sample_weight,
        groups=groups,
        is_log=is_log,
        top_k=top_k,
        n_bins=n_bins,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        random_state=random_state,
    )
