"""Features are checked before compiled code follows their indices, and squares them."""

import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, lil_array, random_array
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.utils import get_tags

from dichotomies import (
    HistAdaBoostClassifier,
    HistGradientBoostClassifier,
    NestedDichotomyClassifier,
    TunedLogisticRegression,
)
from dichotomies._common.validation import check_indices
from dichotomies.structures import STRUCTURES

SHAPE = (40, 8)


def _matrix(form=csr_array):
    return form(random_array(SHAPE, density=0.3, random_state=0, format="coo"))


@pytest.mark.parametrize("form", [csr_array, csc_array, coo_array, lil_array, bsr_array])
def test_proper_matrices_pass(form):
    check_indices(_matrix(form))
    check_indices(form((0, 3)))


@pytest.mark.parametrize("form", [csr_array, csc_array, bsr_array])
@pytest.mark.parametrize("index", [-1, 10**6])
def test_an_index_outside_is_refused(form, index):
    X = _matrix(form)
    X.indices[3] = index
    with pytest.raises(ValueError, match=f"an index of {index} in an axis of length"):
        check_indices(X)


def test_an_index_outside_is_refused_in_coordinate_format():
    X = _matrix(coo_array)
    X.row[0] = SHAPE[0]
    with pytest.raises(ValueError, match=r"an index of 40 in an axis of length 40"):
        check_indices(X)


@pytest.mark.parametrize("change", ["beyond", "decreasing", "short", "begins late"])
def test_offsets_that_do_not_fit_are_refused(change):
    X = _matrix()
    if change == "short":
        X.indptr = X.indptr[:-1]
    else:
        X.indptr[{"beyond": -1, "decreasing": 5, "begins late": 0}[change]] = (
            10**6 if change != "begins late" else 1
        )
    with pytest.raises(ValueError, match="indptr"):
        check_indices(X)


@pytest.mark.parametrize("estimator", [LogisticRegression(), MultinomialNB()])
def test_classifiers_refuse_them_in_fit_and_predict(estimator):
    X, y = _matrix(), np.arange(SHAPE[0]) % 4
    wrong = _matrix()
    wrong.indices[0] = 10**6
    clf = NestedDichotomyClassifier(estimator, random_state=0)
    with pytest.raises(ValueError, match="an index of 1000000"):
        clf.fit(wrong, y)
    with pytest.raises(ValueError, match="an index of 1000000"):
        clf.fit(X, y).predict_proba(wrong)


def test_a_single_logistic_regression_refuses_them():
    X, y = _matrix(), np.arange(SHAPE[0]) % 2
    wrong = _matrix()
    wrong.indices[0] = 10**6
    with pytest.raises(ValueError, match="an index of 1000000"):
        TunedLogisticRegression().fit(wrong, y)
    with pytest.raises(ValueError, match="an index of 1000000"):
        TunedLogisticRegression().fit(X, y).predict_proba(wrong)


ESTIMATORS = [
    GaussianNB(),
    MultinomialNB(),
    BernoulliNB(),
    ComplementNB(),
    LogisticRegression(max_iter=30),
    TunedLogisticRegression(Cs=[1.0]),
    HistAdaBoostClassifier(3),
    HistGradientBoostClassifier(3),
]


def _rows(scale, sparse):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3] * (scale / 10), y[::3]
    return (csr_array(X) if sparse else X), y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-8, 1e8, 1e99])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("sparse", [False, True])
def test_finite_in_finite_out_for_every_learner(estimator, scale, sparse):
    if sparse and not get_tags(estimator).input_tags.sparse:
        pytest.skip("takes no sparse rows")
    X, y = _rows(scale, sparse)
    clf = NestedDichotomyClassifier(estimator, random_state=0).fit(X, y)
    proba = clf.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    assert np.isfinite(clf.predict_log_proba(_rows(1e99, sparse)[0])).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e99])
@pytest.mark.parametrize("structure", [name for name in STRUCTURES.names() if name != "hierarchy"])
def test_finite_in_finite_out_for_every_structure(structure, scale):
    X, y = _rows(scale, False)
    clf = NestedDichotomyClassifier(GaussianNB(), structure, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_whose_squares_overflow_are_refused(sparse):
    X, y = _rows(1e155, sparse)
    clf = NestedDichotomyClassifier(random_state=0)
    with pytest.raises(ValueError, match=r"X has a value of .*e\+15[45]; squares of features"):
        clf.fit(X, y)
    clf.fit(_rows(1.0, sparse)[0], y)
    with pytest.raises(ValueError, match="squares of features beyond"):
        clf.predict(X)
