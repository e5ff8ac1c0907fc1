"""Class probabilities of rows of other libraries equal those of numpy's rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies._common.validation import to_host
from tests.other_arrays import asarray

__all__ = ["asarray"]

LINEAR = LogisticRegression(max_iter=200)
MODELS = {
    "plain": NestedDichotomyClassifier(LINEAR, internal_calibration=None, external_calibration=None),
    "affine": NestedDichotomyClassifier(LINEAR, internal_calibration="platt"),
    "isotonic": NestedDichotomyClassifier(LINEAR, internal_calibration="isotonic", external_calibration=None),
    "not linear": NestedDichotomyClassifier(GaussianNB(), internal_calibration="platt"),
    "geometric": NestedDichotomyEnsemble(LINEAR, n_estimators=3, internal_calibration=None),
    "arithmetic": NestedDichotomyEnsemble(
        LINEAR,
        n_estimators=3,
        internal_calibration="platt",
        pooling="arithmetic",
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_probabilities_equal_those_of_numpy(kind, digits, asarray):
    X, y = digits
    clf = MODELS[kind].set_params(random_state=0).fit(X, y)
    found = clf.predict_proba(asarray(X))
    assert type(found) is type(asarray(X))
    np.testing.assert_allclose(to_host(found), clf.predict_proba(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(asarray(X)), clf.predict(X))


def test_rows_are_fitted_wherever_they_are(digits, asarray):
    X, y = digits
    clf = NestedDichotomyClassifier(GaussianNB(), internal_calibration=None, random_state=0)
    expected = clf.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clf.fit(asarray(X), asarray(y)).predict_proba(X), expected)


def test_rows_of_another_shape_or_with_gaps_are_refused(digits, asarray):
    X, y = digits
    clf = MODELS["plain"].fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(n_rows, 64\)"):
        clf.predict_proba(asarray(X[:, :3]))
    with pytest.raises(ValueError, match="NaN or infinite"):
        clf.predict_proba(asarray(np.full((2, 64), np.nan)))
