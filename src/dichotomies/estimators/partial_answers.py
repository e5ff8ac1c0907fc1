"""Predictions that are less than the whole distribution: top k, sets of classes, nodes of the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dichotomies.inference.conformal import GROUPS, SCORES, Score
from dichotomies.training.plan import check_whole

# searches and sets are imported where they are used: it takes long, and not every program asks for them

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from scipy.sparse import csr_array

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.inference.answers import TopK
    from dichotomies.inference.conformal import ConformalRows
    from dichotomies.inference.fitted import FittedForest
    from dichotomies.inference.tree_answers import TreeAnswers
    from dichotomies.inference.unions import UnionAnswers
    from dichotomies.report import Report


class TopClasses(tuple["LabelArray", "FloatArray"]):
    """The pair ``labels, proba`` of `predict_top_k`, each of shape (n_rows, k).

    Attributes
    ----------
    n_visits : ndarray of shape (n_rows,)
        Number of nodes evaluated; all of them where the whole distribution was computed.
    is_searched : ndarray of shape (n_rows,)
        False where the whole distribution was computed.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(external_calibration=None, random_state=0).fit(X / 16, y)
    >>> best = clf.predict_top_k(X[:3] / 16, k=2, search="exact")
    >>> labels, proba = best
    >>> labels[:, 0].tolist(), best.is_searched.all(), bool((best.n_visits < 9).all())
    ([0, 1, 2], np.True_, True)
    """

    n_visits: IntArray
    is_searched: BoolArray

    def __new__(cls, labels: LabelArray, found: TopK) -> Self:
        """Make the pair."""
        self = super().__new__(cls, (labels, found.proba))
        self.n_visits, self.is_searched = found.n_visits, found.is_searched
        return self


class PartialAnswers:
    """Mixin of the estimators: methods that answer with some classes or groups of them, and the report."""

    if TYPE_CHECKING:  # of the estimator
        model_: FittedForest
        classes_: LabelArray
        conformal_: ConformalRows
        n_jobs: int | None

        def validated_rows(self, X: Matrix) -> Matrix: ...  # noqa: D102

    def report(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        examples: Sequence[object] | None = None,
    ) -> Report:
        """Report on how far the probabilities can be trusted on these rows, as one HTML page.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            Rows that the classifier has not seen.
        y : array of shape (n_rows,)
            Their labels.
        sample_weight : array of shape (n_rows,), optional
            Weights: 2 counts as the row twice.
        examples : sequence of length n_rows, optional
            Names of the rows on the page, or texts.

        Returns
        -------
        Report
            Shows itself in a notebook; ``save(path)`` writes the page.
        """
        from dichotomies.report import make  # takes long to import

        return make(self, X, y, sample_weight=sample_weight, examples=examples)

    def predict_top_k(
        self,
        X: Matrix,
        k: int = 5,
        search: str = "auto",
        *,
        width: int = 10,
    ) -> TopClasses:
        """The most probable classes of each row and their probabilities, the most probable first.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        k : int, default=5
            Number of classes; all of them if there are fewer.
        search : {"auto", "exact", "beam", "greedy"}, default="auto"
            "exact" looks only into nodes that can hold one of the `k` classes, and gives what sorting the
            whole distribution gives. Rows whose search would take longer than that get the whole
            distribution, and so do all rows where probabilities need a sum over all classes, as behind vector
            scaling. "auto" searches only where that takes less time. "beam" keeps the `width` most probable
            nodes at every step, and may miss classes; "greedy" keeps `k`.
        width : int, default=10
            Of "beam"; at least `k` is used.

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
        proba : ndarray of shape (n_rows, k)
            As a pair, whose attributes say how they were found; see `TopClasses`.
        """
        from dichotomies.inference.answers import top_k

        k, width, X = check_whole(k, "k"), check_whole(width, "width"), self.validated_rows(X)
        k = min(k, len(self.classes_))
        found = top_k(self.model_, X, k, search=search, width=width, n_jobs=self.n_jobs)
        return TopClasses(self.classes_[found.codes], found)

    def predict_above(self, X: Matrix, threshold: float) -> csr_array:
        """The probabilities that are at least `threshold`, of all classes that have one.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        threshold : float
            Above 0 and up to 1.

        Returns
        -------
        CSR array of shape (n_rows, n_classes)
            Columns in the order of `classes_`; only the probabilities asked for are stored.
        """
        from dichotomies.inference.answers import above

        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must be a probability above 0 and up to 1, got {threshold!r}.")
        return above(self.model_, self.validated_rows(X), float(threshold), self.n_jobs)

    def proba_of(self, X: Matrix, labels: npt.ArrayLike) -> FloatArray:
        """The probabilities of given classes, by the nodes on their paths alone where that takes less time.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        labels : array of shape (n_rows, m) or (m,)
            Candidates of each row, or of all rows.

        Returns
        -------
        ndarray of the shape of `labels`, or (n_rows, m)
        """
        from dichotomies.inference.answers import proba_of

        X = self.validated_rows(X)
        wanted = np.asarray(labels)
        wanted = wanted[np.newaxis] if wanted.ndim == 1 else wanted
        if wanted.ndim != 2 or len(wanted) not in (1, X.shape[0]):
            raise ValueError(
                f"labels must have shape (m,) or ({X.shape[0]}, m), one row of candidates for each row of X, "
                f"got {wanted.shape}."
            )
        codes = np.broadcast_to(self._codes(wanted), (X.shape[0], wanted.shape[1]))
        return proba_of(self.model_, X, codes, self.n_jobs)

    def _codes(self, labels: LabelArray) -> IntArray:
        """Position of each label in `classes_`."""
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        unknown = np.asarray(self.classes_[codes] != labels)
        if unknown.any():
            raise ValueError(f"{labels[unknown].tolist()[0]!r} is not a class of this model.")
        return codes

    # ------------------------------------------------------------------ prediction sets and tree answers

    def calibrate_sets(self, X: Matrix, y: npt.ArrayLike, *, groups: int | None = None) -> Self:
        """Compute what `predict_set` and ``predict_node(coverage=...)`` need to hold their coverage.

        A classifier fitted with `prediction_sets` has it from its own rows, and needs no others.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            Rows that the classifier has not seen (split conformal).
        y : array of shape (n_rows,)
            Their labels.
        groups : int, optional
            Prepare ``predict_node(coverage=..., groups=...)`` with up to so many groups.

        Returns
        -------
        self
        """
        from dichotomies.inference.sets import conformal_rows

        X = self.validated_rows(X)
        groups = None if groups is None else check_whole(groups, "groups")
        codes = self._codes(np.asarray(y))
        if len(codes) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(codes)} labels.")
        self.conformal_ = conformal_rows(self.model_, X, codes, groups, self.n_jobs)
        return self

    def predict_set(
        self,
        X: Matrix,
        coverage: float = 0.9,
        *,
        score: str = "least-ambiguous",
        by: str = "all",
        allow_empty: bool = False,
    ) -> list[LabelArray]:
        """Sets of classes that hold the true one with the given probability.

        The classifier was fitted with `prediction_sets`, or `calibrate_sets` was called.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        coverage : float, default=0.9
            Share of rows whose set holds the true class: at least this on average, if the rows are
            exchangeable with those of `calibrate_sets`.
        score : {"least-ambiguous", "adaptive", "regularised"}, default="least-ambiguous"
            "least-ambiguous" has the smallest sets: all classes above one probability. "adaptive" has larger
            sets for harder rows: the most probable classes up to a total probability; "regularised" adds a
            penalty for every class after the fifth, which keeps the largest sets smaller.
        by : {"all", "class", "cluster", "frequency"}, default="all"
            Rows that thresholds are computed from: all; those of each class, so that every class with enough
            rows is covered; those of classes with similar scores; or those of classes with about as many
            training rows, so that rare classes are covered as often as frequent ones.
        allow_empty : bool, default=False
            Leave sets empty where no class is within its threshold. Otherwise the most probable class is in
            every set, and the coverage is higher than asked for where that class alone is right more often.

        Returns
        -------
        list of ndarray
            The labels of each row's set, the most probable first.
        """
        from dichotomies.inference.sets import sets

        coverage = self._checked_coverage(coverage)
        if score not in SCORES:
            raise ValueError(f"score must be one of {SCORES}, got {score!r}.")
        if by not in GROUPS:
            raise ValueError(f"by must be one of {GROUPS}, got {by!r}.")
        X, kind = self.validated_rows(X), Score(score)
        if by == "frequency" and not hasattr(self, "class_count_"):
            raise ValueError("by='frequency' needs class_count_, which models of earlier versions lack.")
        count = getattr(self, "class_count_", None)
        thresholds = self.conformal_.thresholds(kind, coverage, by, len(self.classes_), count)
        found = sets(self.model_, X, kind, thresholds, allow_empty=allow_empty, n_jobs=self.n_jobs)
        return [self.classes_[codes] for codes in found]

    def predict_node(
        self, X: Matrix, confidence: float | None = None, *, coverage: float | None = None, groups: int = 1
    ) -> TreeAnswers | UnionAnswers:
        """Groups of classes, as deep in the tree as the evidence goes: a class, or all classes below a node.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        confidence : float, optional
            Least probability of the group: of the nodes on the way down the likelier sides, the deepest that
            has it is the answer.
        coverage : float, optional
            In place of `confidence`: share of rows whose answer is to hold the true class, guaranteed as in
            `predict_set`, after `calibrate_sets` or with `prediction_sets`.
        groups : int, default=1
            More than one: the smallest union of at most so many groups (Mortier et al. 2025). Its time grows
            with the square of the number of classes. With `coverage`, `calibrate_sets` or `prediction_sets`
            must have been given as many.

        Returns
        -------
        TreeAnswers, or UnionAnswers with several groups
            With ``names``, ``proba``, ``size``, ``labels(row)`` and ``holds(y)``.
        """
        from dichotomies.inference.sets import confident_nodes
        from dichotomies.inference.unions import confident_unions

        if (confidence is None) == (coverage is None):
            raise ValueError("Give either confidence or coverage.")
        groups = check_whole(groups, "groups")
        if confidence is None:
            coverage = self._checked_coverage(coverage)
            rows = self.conformal_
            threshold = (
                rows.node_threshold(coverage) if groups == 1 else rows.union_threshold(coverage, groups)
            )
            confidence = float(np.nextafter(threshold, np.inf))  # groups must exceed it
        elif not 0 < confidence <= 1:
            raise ValueError(f"confidence must be a probability above 0 and up to 1, got {confidence!r}.")
        X = self.validated_rows(X)
        if groups > 1:
            return confident_unions(self.model_, X, groups, confidence, self.n_jobs)
        return confident_nodes(self.model_, X, confidence, self.n_jobs)

    def predict_at_depth(self, X: Matrix, depth: int) -> TreeAnswers:
        """The most probable group of classes of the tree cut at a depth.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        depth : int
            0 is the root; classes that lie higher are groups of their own.

        Returns
        -------
        TreeAnswers
        """
        from dichotomies.inference.sets import at_depth

        return at_depth(self.model_, self.validated_rows(X), depth, self.n_jobs)

    def _checked_coverage(self, coverage: Any) -> float:
        check_is_fitted(self)
        if not isinstance(coverage, float | np.floating) or not 0 < coverage < 1:
            raise ValueError(f"coverage must be a float between 0 and 1, got {coverage!r}.")
        if not hasattr(self, "conformal_"):
            raise NotFittedError(
                "Coverage needs rows that the classifier has not seen: call calibrate_sets(X, y) with some, "
                "or fit it with prediction_sets=1, which uses the folds of its calibration."
            )
        return float(coverage)
