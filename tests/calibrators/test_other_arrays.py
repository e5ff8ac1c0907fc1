"""Calibrators on arrays of other libraries equal those on numpy's, and answer with arrays of that library."""

import numpy as np
import pytest

from dichotomies._common.validation import to_host
from dichotomies.calibrators import BINARY, MULTICLASS
from tests.other_arrays import asarray

__all__ = ["asarray"]


@pytest.fixture
def rows(rng):
    log_proba = np.log(rng.dirichlet(np.full(5, 0.5), size=400) + 1e-9)
    y = np.array([rng.choice(5, p=p / p.sum()) for p in np.exp(log_proba)])
    return 2 * log_proba + rng.normal(scale=0.3, size=5), y, rng.random(400)


@pytest.mark.parametrize("name", MULTICLASS.names())
def test_multiclass_calibrators_equal_those_of_numpy(name, rows, asarray):
    log_proba, y, weight = rows
    reference = MULTICLASS.create(name).fit(log_proba, y, weight)
    fitted = MULTICLASS.create(name).fit(*map(asarray, rows))
    given = asarray(log_proba)
    for calibrator in (reference, fitted):
        answer = calibrator.predict_proba(given)
        assert type(answer) is type(given)
        np.testing.assert_allclose(to_host(answer), reference.predict_proba(log_proba), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", BINARY.names())
def test_binary_calibrators_equal_those_of_numpy(name, rng, asarray):
    scores, y = rng.normal(size=200), rng.random(200) < 0.4
    reference = BINARY.create(name).fit(scores, y)
    fitted = BINARY.create(name).fit(asarray(scores), asarray(y))
    answer = fitted.predict_proba(asarray(scores))
    assert type(answer) is type(asarray(scores))
    np.testing.assert_allclose(to_host(answer), reference.predict_proba(scores), rtol=1e-12)


def test_rows_without_probabilities_are_refused(asarray):
    calibrator = MULTICLASS.create("vector").fit(np.log([[0.5, 0.5], [0.9, 0.1]]), [0, 1])
    with pytest.raises(ValueError, match="has NaN"):
        calibrator.predict_proba(asarray(np.array([[0.0, np.nan]])))
    with pytest.raises(ValueError, match=r"with 2 classes, got shape \(1, 3\)"):
        calibrator.predict_proba(asarray(np.zeros((1, 3))))
