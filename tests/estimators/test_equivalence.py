"""Equal to the plainest implementation: recursion, one clone per node, probabilities multiplied."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from tests.reference import RecursiveNestedDichotomy
from tests.slow import slow
from tests.uncalibrated import Uncalibrated

LOGISTIC = LogisticRegression(solver="newton-cholesky", tol=1e-10)
SPARSE_LOGISTIC = LogisticRegression(solver="newton-cg", tol=1e-10)
TREE = DecisionTreeClassifier(random_state=0)


#: How near the learners come: clones are the same arithmetic, statistics are summed in another order, and
#: the optimum of a logistic regression is found by another way.
LEARNERS = {"clones": 1e-10, "naive-bayes": 1e-8, "logistic": 1e-5}


def assert_equal_to_reference(estimator, X, y, X_test, sample_weight=None, **params):
    for learner in ("clones", "auto"):
        clf = Uncalibrated(estimator, random_state=0, learner=learner, **params).fit(X, y, sample_weight)
        assert_equal(clf, estimator, X, y, X_test, sample_weight, LEARNERS[clf.learner_.partition(":")[0]])


def assert_equal(ours, estimator, X, y, X_test, sample_weight, tolerance):
    reference = RecursiveNestedDichotomy(estimator, ours.tree_.to_nested()).fit(X, y, sample_weight)
    expected = reference.predict_proba(X_test)
    np.testing.assert_allclose(ours.predict_proba(X_test), expected, rtol=0, atol=tolerance)
    # where two classes are equally probable in exact arithmetic, either is right
    best = np.searchsorted(ours.classes_, ours.predict(X_test))
    chosen = np.take_along_axis(expected, best[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, expected.max(axis=1), rtol=0, atol=tolerance)


@pytest.mark.parametrize("estimator", [LOGISTIC, GaussianNB(), MultinomialNB(), TREE], ids=repr)
@pytest.mark.parametrize("name", ["optdigits", *slow("letter")])
def test_dense(real_data, name, estimator):
    data = real_data(name)
    (X, y), (X_test, _) = data.split("train"), data.split("test")
    assert_equal_to_reference(estimator, X / 16, y, X_test / 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(solver="newton-cg", tol=1e-10), MultinomialNB(), TREE], ids=repr
)
@pytest.mark.parametrize("container", [csr_array, csr_matrix])
def test_sparse(real_data, container, estimator):
    data = real_data("reuters52")
    (X, y), (X_test, _) = data.split("train"), data.split("test")
    frequent = np.argsort(-X.sum(axis=0))[:300]
    weighting = TfidfTransformer(sublinear_tf=True).fit(X[:, frequent])
    X, X_test = (container(weighting.transform(part[:, frequent])) for part in (X, X_test))
    assert_equal_to_reference(estimator, X, y, X_test)


@pytest.mark.parametrize("estimator", [LOGISTIC, GaussianNB(), TREE], ids=repr)
@pytest.mark.parametrize("structure", ["random", *slow("uniform", "data-balanced")])
def test_digits_with_weights(digits, rng, estimator, structure):
    X, y = digits
    weight = rng.integers(1, 4, size=len(y)).astype(float)
    assert_equal_to_reference(estimator, X[::2], y[::2], X[1::2], weight[::2], structure=structure)
