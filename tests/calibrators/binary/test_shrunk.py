"""Shrinkage: nodes without rows of their own follow their depth, nodes with many go their own way."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from dichotomies.calibrators.binary import PlattScaling, Segments
from dichotomies.calibrators.binary.shrunk import ShrunkPlatt, _Prior, _Rows


def _nodes(rng, sizes, slopes, intercepts, groups=None):
    """Scores of nodes whose calibrated log-odds are known."""
    s = rng.normal(scale=2, size=sum(sizes))
    node = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.random(len(s)) < expit(np.asarray(slopes)[node] * s + np.asarray(intercepts)[node])
    return Segments(s, y, np.concatenate([[0], np.cumsum(sizes)]), groups=groups)


def test_nodes_with_many_rows_are_fitted_as_by_platt(rng):
    segments = _nodes(rng, [20_000] * 8, np.linspace(0.2, 2, 8), np.linspace(-2, 2, 8))
    shrunk, own = (kind().fit_segments(segments).parameters for kind in (ShrunkPlatt, PlattScaling))
    np.testing.assert_allclose(shrunk, own, atol=0.03)


def test_nodes_with_few_rows_keep_the_slope_of_their_depth(rng):
    groups = np.array([0] * 20 + [1] * 20)
    slopes = np.where(groups == 0, 0.5, 1.5)
    segments = _nodes(rng, [1000, *[4] * 19] * 2, slopes, np.zeros(40), groups)
    found = ShrunkPlatt().fit_segments(segments).parameters
    np.testing.assert_allclose(found[:, 0], slopes, rtol=0.35)
    np.testing.assert_allclose(found[:, 1], 0, atol=0.35)


def test_nodes_are_at_the_optimum_of_their_own_penalised_likelihood(rng):
    segments = _nodes(rng, [30, 50, 10], [1.0, 0.3, 2.0], [0.5, -1.0, 0.0])
    prior = np.array([4.0, 0.5, 2.0])
    mean = np.array([[0.8, 0.8, 0.8], [0.0, 0.0, 0.0]])
    found = _Rows.of(segments).minimum(_Prior(mean, prior[:, None]), mean)
    for k in range(3):
        rows = slice(segments.offsets[k], segments.offsets[k + 1])
        s, t = segments.scores[rows], segments.targets[rows]

        def objective(theta, s=s, t=t, centre=mean[:, k]):
            z = theta[0] * s + theta[1]
            d, e = theta - centre
            penalty = prior[0] * d * d + 2 * prior[1] * d * e + prior[2] * e * e
            return (np.logaddexp(0, z) - t * z).sum() + penalty / 2

        expected = minimize(objective, mean[:, k], tol=1e-12).x
        np.testing.assert_allclose(found[:, k], expected, atol=1e-4)


def test_under_a_given_prior_a_node_does_not_depend_on_the_others(rng):
    sizes = [30, 4, 0, 50, 10, 6]
    segments = _nodes(rng, sizes, np.ones(6), np.zeros(6))
    perfect = segments.scores > 0  # separated: its steps are halved more often than those of the others
    targets = np.where(np.repeat(np.arange(6), sizes) == 3, perfect, segments.targets)
    prior = np.array([[1e-3], [0.0], [1e-3]])
    start = np.array([[3.0], [-2.0]])
    together = Segments(segments.scores, targets, segments.offsets)
    mean = np.zeros((2, 6))
    found = _Rows.of(together).minimum(_Prior(mean, prior), mean + start)
    for k in np.flatnonzero(sizes):
        rows = slice(together.offsets[k], together.offsets[k + 1])
        alone = _Rows.of(Segments(together.scores[rows], targets[rows], [0, sizes[k]]))
        expected = alone.minimum(_Prior(mean[:, :1], prior), start)
        np.testing.assert_allclose(found[:, [k]], expected, rtol=1e-3, atol=1e-3)


def test_fits_without_a_fold_leave_the_fit_to_all_scores_as_it_is(rng):
    sizes, groups = [3000, 1500, 900, 40], np.array([0, 1, 1, 2])
    segments = _nodes(rng, sizes, [0.5, 1.0, 2.0, 1.0], np.zeros(4), groups)
    before = ShrunkPlatt().fit_segments(_copy(segments)).parameters
    ShrunkPlatt().fit_without(segments, rng.integers(3, size=sum(sizes)), 3)
    assert np.array_equal(ShrunkPlatt().fit_segments(segments).parameters, before)


def _copy(segments):
    return Segments(segments.scores, segments.targets, segments.offsets, groups=segments.groups)


def test_slopes_of_nodes_may_differ_many_times(rng):
    slopes = np.tile([0.5, 1.0, 4.0, 8.0], 5)
    segments = _nodes(rng, [400] * 20, slopes, np.zeros(20))
    found = ShrunkPlatt().fit_segments(segments).parameters[:, 0]
    np.testing.assert_allclose(found, slopes, rtol=0.5)


@pytest.mark.parametrize("swap", [False, True])
def test_exchanging_left_and_right_changes_the_sign_alone(rng, swap):
    segments = _nodes(rng, [40, 60, 20, 30], [1.0, 0.5, 2.0, 1.0], [0.5, -0.5, 0.2, 0.0])
    other = Segments(-segments.scores, ~segments.targets, segments.offsets)
    a, b, _ = ShrunkPlatt().fit_segments(segments if swap else other).parameters.T
    a_, b_, _ = ShrunkPlatt().fit_segments(other if swap else segments).parameters.T
    np.testing.assert_allclose(a, a_, rtol=0.02)
    np.testing.assert_allclose(b, -b_, atol=0.02)


def test_fits_without_a_fold_share_the_prior_of_all_and_are_nearly_fits_to_the_others(rng):
    segments = _nodes(rng, [4000, 1500, 40, 30], [1.0, 0.5, 2.0, 1.0], [0.5, -0.5, 0.2, 0.0])
    fold = np.arange(len(segments.scores)) % 3
    for f, maps in enumerate(ShrunkPlatt().fit_without(segments, fold, 3)):
        alone = ShrunkPlatt().fit_segments(segments.take(fold != f))
        np.testing.assert_allclose(maps.parameters, alone.parameters, atol=0.05)
