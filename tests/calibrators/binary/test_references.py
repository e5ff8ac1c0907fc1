"""Every method against an independent implementation of the same idea."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from dichotomies.calibrators.binary import (
    BetaCalibration,
    BinaryTemperature,
    IsotonicCalibration,
    PlattScaling,
    Segments,
    VennAbers,
    segment_nll,
)
from tests.calibrators.binary.examples import drawn, part


def soft_targets(y, weights):
    """Platt's targets."""
    positive, negative = weights[y].sum(), weights[~y].sum()
    return np.where(y, (positive + 1) / (positive + 2), 1 / (negative + 2))


def soft_nll(log_odds, y, weights):
    t = soft_targets(y, weights)
    return float(weights @ (np.logaddexp(0, log_odds) - t * log_odds))


def optimum(features, y, weights, bounds):
    """The least soft NLL over ``parameters @ features``, by a general-purpose optimiser."""

    def loss(parameters):
        return soft_nll(parameters @ features, y, weights)

    def gradient(parameters):
        return features @ (weights * (expit(parameters @ features) - soft_targets(y, weights)))

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
    start = np.zeros(len(features))
    return minimize(loss, start, jac=gradient, method="L-BFGS-B", bounds=bounds, options=options).fun


FREE, POSITIVE = (None, None), (0, None)
FAMILIES = {
    "platt": (PlattScaling(), lambda s: [s, np.ones_like(s)], [FREE, FREE]),
    "temperature": (BinaryTemperature(), lambda s: [s], [POSITIVE]),
    "beta": (
        BetaCalibration(),
        lambda s: [-np.logaddexp(0, -s), np.logaddexp(0, s), np.ones_like(s)],
        [POSITIVE, POSITIVE, FREE],
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("slope", [1.0, 0.2, 5.0, -0.3])
@pytest.mark.parametrize("intercept", [0.0, 2.0])
def test_parametric_families_reach_the_optimum(family, slope, intercept, rng):
    calibrator, features, bounds = FAMILIES[family]
    rows = drawn(rng, [6, 40, 1_000], slope, intercept)
    maps = calibrator.fit_segments(rows)
    log_odds = maps.apply_segments(rows)
    for k in range(3):
        one, z = part(rows, k), log_odds[rows.offsets[k] : rows.offsets[k + 1]]
        weights = np.ones(len(one.scores))
        best = optimum(np.array(features(one.scores)), one.targets, weights, bounds)
        assert soft_nll(z, one.targets, weights) == pytest.approx(best, abs=1e-6)
        assert soft_nll(z, one.targets, weights) <= best + 1e-8


def test_platt_on_the_reference_example():
    """Platt's reference parameters (libsvm's, which stops at a gradient of 1e-5) and the exact optimum."""
    scores, y = np.array([5.0, -4.0, 1.0]), np.array([True, False, False])
    a, b, _ = PlattScaling().fit(scores, y).maps_.parameters[0]
    assert (a, b) == (pytest.approx(0.20261354, abs=1e-5), pytest.approx(-0.65236315, abs=1e-5))
    residual = expit(a * scores + b) - np.array([2 / 3, 1 / 4, 1 / 4])
    assert residual.sum() == pytest.approx(0, abs=1e-7)
    assert residual @ scores == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("factor", [1.0, 1_000.0])
def test_platt_equals_scikit_learns_sigmoid(factor, rng):
    rows = drawn(rng, [10, 200, 3_000], slope=0.5, intercept=-1.0)
    weights = rng.random(len(rows.scores)) + 0.5
    rows = Segments(rows.scores * factor, rows.targets, rows.offsets, weights)
    log_odds = PlattScaling().fit_segments(rows).apply_segments(rows)
    for k in range(3):
        one, z = part(rows, k), log_odds[rows.offsets[k] : rows.offsets[k + 1]]
        reference = _SigmoidCalibration().fit(one.scores, one.targets.astype(float), one.weights)
        theirs = -(reference.a_ * one.scores + reference.b_)
        ours = soft_nll(z, one.targets, one.weights)
        assert ours == pytest.approx(soft_nll(theirs, one.targets, one.weights), abs=1e-6)


def test_one_sided_platt_is_laplaces_rule():
    p = PlattScaling().fit([1.0, 2.0, 5.0], [True] * 3).predict_proba([-7.0, 0.0, 3.0])
    np.testing.assert_allclose(p[:, 1], 4 / 5)


ROWS = st.lists(
    st.tuples(st.integers(-4, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40
).filter(lambda rows: any(weight for _, _, weight in rows))


@given(rows=ROWS)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_isotonic_equals_scikit_learns_away_from_0_and_1(rows):
    scores, y, weights = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    grid = np.linspace(-5, 5, 81)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = IsotonicRegression(out_of_bounds="clip").fit(scores, y, weights)
    at_knots = reference.predict(reference.X_thresholds_)
    ours = IsotonicCalibration().fit(scores, y.astype(bool), weights)
    p, theirs = ours.predict_proba(grid)[:, 1], reference.predict(grid)
    inner = (at_knots > 1e-12) & (at_knots < 1 - 1e-12)
    if inner.any():
        low, high = reference.X_thresholds_[inner][[0, -1]]
        away = (grid >= low) & (grid <= high)
        np.testing.assert_allclose(p[away], theirs[away], atol=1e-12)
    zero, one = grid[theirs < 1e-12], grid[theirs > 1 - 1e-12]
    kept = weights > 0
    if len(zero):
        weight = weights[kept & (scores <= reference.X_thresholds_[at_knots < 1e-12].max())].sum()
        above = at_knots[at_knots > 1e-12].min(initial=1.0)
        np.testing.assert_allclose(ours.predict_proba(zero)[:, 1], min(1 / (weight + 2), above))
    if len(one):
        weight = weights[kept & (scores >= reference.X_thresholds_[at_knots > 1 - 1e-12].min())].sum()
        below = at_knots[at_knots < 1 - 1e-12].max(initial=0.0)
        np.testing.assert_allclose(ours.predict_proba(one)[:, 1], max((weight + 1) / (weight + 2), below))


def test_isotonic_equals_scikit_learns_on_many_rows(rng):
    rows = drawn(rng, [3_000], slope=0.5)
    reference = IsotonicRegression(out_of_bounds="clip").fit(rows.scores, rows.targets)
    theirs = reference.predict(rows.scores)
    ours = IsotonicCalibration().fit(rows.scores, rows.targets).predict_proba(rows.scores)[:, 1]
    away = (theirs > 0) & (theirs < 1)
    assert away.mean() > 0.9
    np.testing.assert_allclose(ours[away], theirs[away], atol=1e-12)


def brute_force(scores, y, grid):
    """Two isotonic regressions for every score in question."""
    p = np.empty((2, len(grid)))
    for i, score in enumerate(grid):
        for side in (0, 1):
            fitted = IsotonicRegression(out_of_bounds="clip").fit(np.r_[scores, score], np.r_[y, side])
            p[side, i] = fitted.predict([score])[0]
    return p[1] / (1 - p[0] + p[1])


@pytest.mark.parametrize("seed", range(30))
def test_venn_abers_equals_two_isotonic_regressions_per_score(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 25)
    scores = rng.integers(-4, 5, n).astype(float)
    y = rng.random(n) < expit(0.5 * scores)
    grid = np.r_[np.arange(-5, 5.25, 0.25), 1.0 + 1e-9]  # scikit-learn takes scores within 1e-15 for equal
    ours = VennAbers().fit(scores, y).predict_proba(grid)[:, 1]
    np.testing.assert_allclose(ours, brute_force(scores, y.astype(float), grid), atol=1e-10)


def test_venn_abers_equals_the_published_package(rng):
    reference = pytest.importorskip("venn_abers", reason="test-only reference: pip install venn-abers")
    rows = drawn(rng, [500], slope=0.5)
    grid = rng.normal(scale=2.0, size=100)
    p = expit(rows.scores)
    fitted = reference.VennAbers()
    fitted.fit(np.column_stack([1 - p, p]), rows.targets.astype(int), precision=None)
    theirs, _ = fitted.predict_proba(np.column_stack([expit(-grid), expit(grid)]))
    ours = VennAbers().fit(rows.scores, rows.targets).predict_proba(grid)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize(("slope", "intercept"), [(0.5, 0.0), (1.5, -1.0)])
def test_beta_equals_the_published_package(slope, intercept, rng):
    reference = pytest.importorskip("betacal", reason="test-only reference: pip install betacal")
    rows = drawn(rng, [20_000], slope, intercept)
    fitted = reference.BetaCalibration(parameters="abm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(expit(rows.scores), rows.targets)
    theirs = fitted.predict(expit(rows.scores))
    theirs_nll = segment_nll(np.log(theirs / (1 - theirs)), rows) / 20_000
    ours_nll = segment_nll(BetaCalibration().fit_segments(rows).apply_segments(rows), rows) / 20_000
    assert ours_nll == pytest.approx(theirs_nll, abs=1e-6)
