"""Sparse matrices that point outside of themselves are refused before compiled code follows them."""

import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, lil_array, random_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from dichotomies import TunedLogisticRegression, NestedDichotomyClassifier
from dichotomies._common.sparse import check_indices

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
        X.indptr[{"beyond": -1, "decreasing": 5, "begins late": 0}[change]] = 10**6 if change != "begins late" else 1
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
