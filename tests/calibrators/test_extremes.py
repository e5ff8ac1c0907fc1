"""Finite in, finite out: every calibrator, whatever the size of scores and weights."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from dichotomies.calibrators.binary import BINARY, CalibrationTree
from dichotomies.calibrators.multiclass import MULTICLASS

GRID = np.array([-1.7e308, -1e300, -1e160, -1e4, -1.0, 0.0, 5e-324, 1.0, 1e4, 1e160, 1e300, 1.7e308])
SIZES = st.sampled_from([1e-320, 1e-300, 1e-150, 1.0, 1e150, 1e300, 1.7e308])
ANY = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = ANY | st.builds(lambda size, x: size * x, SIZES, st.floats(-1, 1))
WEIGHTS = st.lists(SIZES | st.floats(0, 3), min_size=8, max_size=8).filter(any)
SIDES = st.lists(st.booleans(), min_size=8, max_size=8)


@pytest.mark.parametrize("name", BINARY.names())
@given(scores=st.lists(NUMBERS, min_size=8, max_size=8), y=SIDES, weights=WEIGHTS)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_binary_calibrators_answer_finitely(name, scores, y, weights):
    fitted = BINARY.create(name).fit(scores, y, weights)
    for asked in (GRID, scores):
        assert np.isfinite(fitted.predict_log_odds(asked)).all()
        np.testing.assert_allclose(fitted.predict_proba(asked).sum(axis=1), 1.0)


@given(
    X=st.lists(NUMBERS, min_size=16, max_size=16),
    scores=st.lists(NUMBERS, min_size=8, max_size=8),
    y=SIDES,
    weights=WEIGHTS,
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_calibration_trees_take_any_finite_features(X, scores, y, weights):
    features = np.reshape(X, (8, 2))
    tree = CalibrationTree(min_weight_leaf=0.1).fit(scores, y, weights, X=features)
    assert np.isfinite(tree.predict_log_odds(scores, features)).all()


@pytest.mark.parametrize("name", MULTICLASS.names())
@given(
    log_proba=st.lists(NUMBERS, min_size=24, max_size=24),
    y=st.lists(st.integers(0, 2), min_size=8, max_size=8),
    weights=WEIGHTS,
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_multiclass_calibrators_answer_finitely(name, log_proba, y, weights):
    rows = np.reshape(log_proba, (8, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few rows are easily separated
        fitted = MULTICLASS.create(name).fit(rows, y, weights)
    for asked in (rows, GRID.reshape(4, 3)):
        answer = fitted.predict_log_proba(asked)
        assert np.isfinite(answer).all()
        np.testing.assert_allclose(np.exp(answer).sum(axis=1), 1.0)
