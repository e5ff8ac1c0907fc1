"""`NestedDichotomyClassifier`: the scikit-learn face; it validates, wires and delegates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dichotomies.inference import class_log_proba, for_each_chunk
from dichotomies.learners import GenericLearner, NodeTask, input_dtypes
from dichotomies.structures import GrowingTask, resolve

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._typing import FloatArray, IntArray, LabelArray, Matrix


class NestedDichotomyClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A binary tree over the classes with a binary classifier at every node.

    A node's classifier separates the classes on its left from those on its right; the probability of a
    class is the product of the probabilities on its path from the root.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Cloned for every node. It must be able to give probabilities. None means `LogisticRegression()`.
    structure : str, structure, ClassTree or nested lists of labels, default="random"
        The tree: the name of a way to grow one (``dichotomies list`` shows them), an object that grows
        one, or the tree itself, whose leaves must be exactly the labels in `y`.
    n_jobs : int, default=None
        Nodes trained, and chunks of rows predicted, at a time, as everywhere in scikit-learn. Training
        runs on the joblib backend chosen by `joblib.parallel_config`; prediction uses threads. The
        result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the tree, and every ``random_state`` of `estimator` that is None.
    verbose : bool or int, default=0
        Whether to report progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    tree_ : ClassTree
        The tree over `classes_`.
    estimators_ : list of classifiers
        The trained clones, in the order of the tree's nodes; None where a node saw rows of one side only
        (when all rows of a class have weight zero).
    learner_ : str
        How the nodes were trained.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, where `X` was a data frame with such names.

    References
    ----------
    Leathart, Frank, Pfahringer & Holmes, *On the Calibration of Nested Dichotomies for Large Multiclass
    Tasks*. Frank & Kramer, *Ensembles of nested dichotomies for multi-class problems*, ICML 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(structure=[0, [1, 2]]).fit(X, y)
    >>> clf.predict_proba(X[[0, 60, 120]]).round(3)
    array([[0.984, 0.016, 0.   ],
           [0.055, 0.937, 0.008],
           [0.   , 0.03 , 0.97 ]])
    """

    def __init__(
        self,
        estimator: Any = None,
        structure: Any = "random",
        *,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = 0,
    ) -> None:
        self.estimator = estimator
        self.structure = structure
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(
        self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> NestedDichotomyClassifier:
        """Grow the tree and train its nodes.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            The features.
        y : array of shape (n_rows,)
            The labels: strings, integers or booleans; at least two different ones.
        sample_weight : array of shape (n_rows,), optional
            Weights, passed on to every node.

        Returns
        -------
        self
        """
        learner = GenericLearner(self._base())
        X, codes = self._validated(X, y)
        weight = self._validated_weight(sample_weight, X)
        random_state = check_random_state(self.random_state)
        structure = resolve(self.structure)
        self.tree_ = structure.grow_from(GrowingTask(X, codes, self.classes_, weight), random_state)
        task = NodeTask(self.tree_, X, codes, weight if self._nodes_get_weight(weight) else None)
        self._scorer = learner.fit(
            task, random_state=random_state, n_jobs=self.n_jobs, verbose=bool(self.verbose)
        )
        self.learner_ = learner.description
        return self

    def _validated(self, X: Matrix, y: Any) -> tuple[Matrix, IntArray]:
        """Check X and y; set `classes_` and return the class code of each row."""
        X, y = validate_data(self, X, y, **self._accepted())
        if y.dtype.kind not in "USbiu":  # strings, booleans and integers always are labels
            check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"A classifier needs at least two classes, but y has only one class: {only!r}.")
        return X, codes

    def _validated_weight(self, sample_weight: npt.ArrayLike | None, X: Matrix) -> FloatArray | None:
        if sample_weight is None:
            return None
        weight: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        return weight

    def _accepted(self) -> dict[str, Any]:
        """What X may be: what the base learner takes."""
        accepts = get_tags(self._base()).input_tags
        return {
            "accept_sparse": "csr" if accepts.sparse else False,
            "dtype": input_dtypes(self._base()),
            "order": "C",  # rows are what nodes and chunks take
            "ensure_all_finite": not accepts.allow_nan,
        }

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _nodes_get_weight(self, weight: FloatArray | None) -> bool:
        """Whether weights go to the nodes: always, unless metadata routing says they should not."""
        if weight is None or not get_config()["enable_metadata_routing"]:
            return True
        return "sample_weight" in process_routing(self, "fit", sample_weight=weight).estimator.fit

    # ------------------------------------------------------------------ prediction

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the class probabilities, exact even where the probability underflows.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        X = self._validated_for_prediction(X)
        out = np.empty((X.shape[0], len(self.classes_)))

        def keep(rows: slice, log_odds: FloatArray) -> None:
            class_log_proba(self.tree_, log_odds, out[rows])

        for_each_chunk(self.tree_, self._scorer, X, keep, self.n_jobs)
        return out

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Class probabilities; every row sums to 1.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        log_proba = self.predict_log_proba(X)
        return np.exp(log_proba, out=log_proba)

    def predict(self, X: Matrix) -> LabelArray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        X = self._validated_for_prediction(X)
        best = np.empty(X.shape[0], dtype=np.intp)

        def keep(rows: slice, log_odds: FloatArray) -> None:
            best[rows] = class_log_proba(self.tree_, log_odds).argmax(axis=1)

        for_each_chunk(self.tree_, self._scorer, X, keep, self.n_jobs)
        labels: LabelArray = self.classes_[best]
        return labels

    def _validated_for_prediction(self, X: Matrix) -> Matrix:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._accepted())

    @property
    def estimators_(self) -> list[Any]:
        """The trained clones, in the order of the tree's nodes."""
        check_is_fitted(self)
        return [node.estimator for node in self._scorer.nodes]

    # ------------------------------------------------------------------ scikit-learn's protocols

    def get_metadata_routing(self) -> MetadataRouter:
        """Where `sample_weight` goes: this estimator uses it, and passes it to those that request it."""
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(
            estimator=self._base(), method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepts = get_tags(self._base()).input_tags
        tags.input_tags.sparse = accepts.sparse
        tags.input_tags.allow_nan = accepts.allow_nan
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_scorer")
