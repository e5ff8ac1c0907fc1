"""`TopClasses`: a pair of labels and probabilities that says how it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray
    from dichotomies.inference.answers import TopK


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
