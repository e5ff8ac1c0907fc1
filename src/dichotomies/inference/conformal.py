"""Conformal prediction sets: thresholds on scores such that sets hold the true class as often as asked.

A score says how ill a class fits a row. If the rows that thresholds are computed on and the rows to predict
are exchangeable, the set of all classes whose score is at most the ``ceil((n + 1) coverage)``-th smallest of
n scores of true classes holds the true class with at least that probability, whatever the model is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Optional

#: Quantiles of a class's scores by which classes are clustered (Ding et al. 2023).
_QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.9)

#: Multiple of a log-probability whose fraction is as good as random.
_DIGITS = 1e6

#: Calibration rows for each cluster of classes, at least.
_ROWS_PER_CLUSTER = 150

#: Groups of classes by their frequency, at most.
_MOST_FREQUENCIES = 10


@savable(
    "conformal-rows",
    codes=Array("integer", "n_rows", within=(0, "n_classes")),
    log_proba=Array("float", "n_rows"),
    mass_above=Array("float", "n_rows"),
    rank=Array("integer", "n_rows"),
    share=Array("float", "n_rows"),
    wrong_node=Array("float", "n_rows"),
    wrong_union=Optional(Array("float", "n_rows", "n_groups"), may_be_missing=True),
)
@dataclass(frozen=True, eq=False)
class ConformalRows:
    """Rows that thresholds are computed from: their true classes, by a model that has not seen them.

    Attributes
    ----------
    codes : (n_rows,)
        The true classes.
    log_proba : (n_rows,)
        Log-probability of the true class.
    mass_above, rank : (n_rows,)
        Probability and number of the classes that are more probable; equals count if their code is lower.
    share : (n_rows,)
        See `row_share`.
    wrong_node : (n_rows,)
        Probability of the first node without the true class, on the way down the likelier sides; 0 if all
        nodes hold it. An answer holds the true class if it stops before that node.
    wrong_union : (n_rows, n_groups) or None
        Greatest probability at which the smallest union of at most 1, 2, ... groups lacks the true class.
    """

    codes: IntArray
    log_proba: FloatArray
    mass_above: FloatArray
    rank: IntArray
    share: FloatArray
    wrong_node: FloatArray
    wrong_union: FloatArray | None = None

    @classmethod
    def joined(cls, parts: list[ConformalRows]) -> ConformalRows:
        """Rows of several parts, such as folds."""
        names = [each.name for each in fields(cls) if getattr(parts[0], each.name) is not None]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def scores(self, score: Score) -> FloatArray:
        """Scores of the true classes."""
        return score(self.log_proba, self.mass_above, self.rank, self.share)

    def thresholds(
        self, score: Score, coverage: float, by: str, n_classes: int, class_count: IntArray | None = None
    ) -> FloatArray:
        """Threshold of each class (n_classes,).

        Parameters
        ----------
        by : {"all", "class", "cluster", "frequency"}
            Rows that a class's threshold is computed from: all; its own where they are enough for it to be
            finite, otherwise those of all classes that have too few; those of classes with similar scores;
            or those of classes with about as many training rows.
        class_count : (n_classes,), optional
            Number of training rows of each class, for "frequency".
        """
        scores = self.scores(score)
        everyone = np.full(n_classes, quantile(scores, coverage))
        if by == "all":
            return everyone
        if by == "frequency":
            assert class_count is not None
            group = self._frequencies(class_count)
        else:
            group = np.arange(n_classes) if by == "class" else self._clusters(scores, coverage, n_classes)
        order = np.argsort(group[self.codes], kind="stable")
        sizes = np.bincount(group[self.codes], minlength=n_classes)
        parts = np.split(scores[order], np.cumsum(sizes)[:-1])
        own = np.array([quantile(part, coverage) for part in parts])
        is_own = np.isfinite(own)
        rare = quantile(scores[~is_own[group[self.codes]]], coverage)
        return np.where(is_own, own, rare if np.isfinite(rare) else everyone)[group]

    def _clusters(self, scores: FloatArray, coverage: float, n_classes: int) -> IntArray:
        """Cluster of each class by quantiles of its scores; classes with few rows form one of their own."""
        sizes = np.bincount(self.codes, minlength=n_classes)
        many = np.flatnonzero(sizes >= fewest_rows(coverage))
        n_clusters = min(int(sizes[many].sum()) // _ROWS_PER_CLUSTER, len(many), n_classes - 1)
        group = np.zeros(n_classes, dtype=np.intp)
        if n_clusters < 2:
            return group
        parts = np.split(scores[np.argsort(self.codes, kind="stable")], np.cumsum(sizes)[:-1])
        points = np.array([np.quantile(parts[c], _QUANTILES) for c in many])
        from sklearn.cluster import KMeans  # takes long to import

        means = KMeans(n_clusters, n_init=3, random_state=0).fit(points, sample_weight=np.sqrt(sizes[many]))
        group[many] = 1 + means.labels_
        return group

    def _frequencies(self, class_count: IntArray) -> IntArray:
        """Group of each class by its number of training rows, with about as many rows in each group."""
        _, which = np.unique(class_count, return_inverse=True)
        n_rows = np.bincount(which[self.codes], minlength=int(which.max()) + 1)  # by number of training rows
        n_groups = max(1, min(len(self.codes) // _ROWS_PER_CLUSTER, _MOST_FREQUENCIES))
        middle = np.cumsum(n_rows) - n_rows / 2
        group = np.minimum(middle * n_groups / max(len(self.codes), 1), n_groups - 1).astype(np.intp)
        return np.asarray(group[which])

    def node_threshold(self, coverage: float) -> float:
        """Probability that nodes must exceed for the deepest such node to hold the true class as often."""
        return quantile(self.wrong_node, coverage)

    def union_threshold(self, coverage: float, groups: int) -> float:
        """Probability that unions must exceed for the smallest to hold the true class as often.

        A union need not hold the smaller ones. Above its score a row's union holds the true class whatever
        the probability, so the guarantee is that of split conformal prediction (Mortier et al. 2025).
        """
        n_groups = 0 if self.wrong_union is None else self.wrong_union.shape[1]
        if self.wrong_union is None or groups > n_groups:
            raise ValueError(
                f"Unions of {groups} groups with a coverage need calibrate_sets(X, y, groups={groups}); "
                f"it was called with {f'groups={n_groups}' if n_groups else 'no groups'}."
            )
        return quantile(self.wrong_union[:, groups - 1], coverage)


def quantile(scores: FloatArray, coverage: float) -> float:
    """The ``ceil((n + 1) coverage)``-th smallest score; infinite where there are too few.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.inference.conformal import quantile
    >>> quantile(np.arange(1.0, 10.0), 0.9), quantile(np.arange(1.0, 9.0), 0.9)
    (9.0, inf)
    """
    place = int(np.ceil((len(scores) + 1) * coverage - 1e-9))
    return float(np.partition(scores, place - 1)[place - 1]) if place <= len(scores) else np.inf


def fewest_rows(coverage: float) -> int:
    """Rows below which the threshold for a coverage is infinite."""
    return int(np.ceil(coverage / (1 - coverage) - 1e-9))


def row_share(log_proba: FloatArray) -> FloatArray:
    """Share of a class's own probability that counts in adaptive scores, between 0 and 1, for each row.

    It takes the place of a random number, so that sets are not larger than they need be, and is made of the
    last digits of the row's greatest log-probability: the same row always has the same set.
    """
    share: FloatArray = np.mod(_DIGITS * log_proba.max(axis=1), 1.0)
    return share


@dataclass(frozen=True)
class Score:
    """Nonconformity of classes with a row; the lower the better.

    Attributes
    ----------
    kind : {"least-ambiguous", "adaptive", "regularised"}
        ``-log p`` (the order of ``1 - p``); the probability of all more probable classes plus a share of the
        class's own (Romano et al. 2020); the same plus `penalty` for every class beyond the first `free`
        (Angelopoulos et al. 2021).
    """

    kind: str = "least-ambiguous"
    penalty: float = 0.01
    free: int = 5

    def __call__(
        self, log_proba: FloatArray, mass_above: FloatArray, rank: IntArray, share: FloatArray
    ) -> FloatArray:
        """Scores of classes with these probabilities, given what ranks above them and the row's share."""
        if self.kind == "least-ambiguous":
            return -log_proba
        score: FloatArray = mass_above + share * np.exp(log_proba)
        if self.kind == "regularised":
            score = score + self.penalty * np.maximum(rank + 1 - self.free, 0)
        return score


#: Kinds of scores, and rows that thresholds are computed from.
SCORES, GROUPS = ("least-ambiguous", "adaptive", "regularised"), ("all", "class", "cluster", "frequency")
