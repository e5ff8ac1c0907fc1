"""Smoothed isotonic regression, Bayesian binning and trees against references."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator
from scipy.special import expit, gammaln, logit, logsumexp
from sklearn.isotonic import IsotonicRegression

from dichotomies.calibrators.binary import (
    BayesianBinning,
    BinaryCalibrator,
    CalibrationTree,
    IsotonicCalibration,
    PlattScaling,
    Segments,
    SmoothIsotonic,
    segment_nll,
)
from dichotomies.persistence.checks import check
from dichotomies.persistence.errors import InconsistentModelError
from tests.calibrators.binary.examples import drawn, join


def new_row_nll(calibrator: BinaryCalibrator, old, new):
    return segment_nll(calibrator.fit_segments(old).apply_segments(new), new)


# Smoothed isotonic regression


@pytest.mark.parametrize("seed", range(20))
def test_smooth_isotonic_is_pchip_through_the_blocks_centres(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(5, 200)
    scores, weights = rng.normal(size=n).round(seed % 3 + 1), rng.choice([0.5, 1.0, 2.0], size=n)
    y = rng.random(n) < expit(2 * scores)
    fitted = IsotonicRegression().fit(scores, y, weights).predict(scores).round(12)
    blocks = [fitted == value for value in np.unique(fitted)]
    centres = logit([np.average(expit(scores[block]), weights=weights[block]) for block in blocks])
    isotonic = IsotonicCalibration().fit(scores, y, weights)
    smooth = SmoothIsotonic().fit(scores, y, weights)
    if len(blocks) == 1:
        expected = isotonic.predict_proba(scores)[:, 1]
    else:
        curve = PchipInterpolator(centres, isotonic.predict_proba(centres)[:, 1])
        expected = curve(np.clip(scores, centres[0], centres[-1]))
    np.testing.assert_allclose(smooth.predict_proba(scores)[:, 1], expected, rtol=1e-9)


def test_smooth_isotonic_keeps_the_order_that_isotonic_regression_ties(rng):
    rows = drawn(rng, [2_000], slope=0.5)
    z = SmoothIsotonic().fit_segments(rows).apply_segments(rows)[np.argsort(rows.scores)]
    tied = IsotonicCalibration().fit_segments(rows).apply_segments(rows)
    assert len(np.unique(z)) > 0.9 * len(z)
    assert len(np.unique(tied)) < 0.2 * len(z)


def test_smooth_isotonic_is_better_than_isotonic_on_new_rows(rng):
    """As in Jiang et al. 2011, where the true curve is smooth."""
    old, new = (drawn(rng, [300] * 200, slope=0.5, intercept=0.5) for _ in range(2))
    assert new_row_nll(SmoothIsotonic(), old, new).sum() < new_row_nll(IsotonicCalibration(), old, new).sum()


# Bayesian binning into quantiles


def paper_bbq(scores, y, at):
    """Naeini et al. 2015, equations 1 to 3, for scores without ties, one binning after another."""
    order = np.argsort(scores)
    scores, y, n = scores[order], y[order], len(scores)
    least, most = max(1, int(n ** (1 / 3) / 10)), min(int(np.ceil(n / 5)), int(np.ceil(10 * n ** (1 / 3))))
    evidence, answers = [], []
    for n_bins in range(least, most + 1):
        bin_of = np.floor((np.arange(n) + 0.5) * n_bins / n).astype(int)
        first = np.searchsorted(bin_of, np.arange(n_bins))
        cuts = (scores[first[1:] - 1] + scores[first[1:]]) / 2
        edges = np.r_[0, expit(cuts), 1]
        p = (edges[1:] + edges[:-1]) / 2
        total = np.bincount(bin_of)
        positive = np.bincount(bin_of, y)
        alpha, beta = 2 / n_bins * p, 2 / n_bins * (1 - p)
        evidence.append(
            np.sum(gammaln(2 / n_bins) - gammaln(total + 2 / n_bins) + gammaln(positive + alpha))
            + np.sum(gammaln(total - positive + beta) - gammaln(alpha) - gammaln(beta))
        )
        answers.append(((positive + alpha) / (total + 2 / n_bins))[np.searchsorted(cuts, at, side="right")])
    return np.exp(np.array(evidence) - logsumexp(evidence)) @ np.array(answers)


@pytest.mark.parametrize("n", [1, 4, 7, 33, 150, 2_000])
def test_bbq_equals_the_papers_formulas(n, rng):
    scores = rng.normal(size=n)
    y = rng.random(n) < expit(2 * scores)
    grid = np.linspace(-4, 4, 200)
    ours = BayesianBinning().fit(scores, y).predict_proba(grid)[:, 1]
    np.testing.assert_allclose(ours, paper_bbq(scores, y, grid), rtol=1e-9)


def test_bbq_approaches_the_true_curve(rng):
    def error(n):
        scores = rng.uniform(-3, 3, size=n)
        fitted = BayesianBinning().fit(scores, rng.random(n) < expit(2 * scores))
        grid = np.linspace(-3, 3, 200)
        return np.abs(fitted.predict_proba(grid)[:, 1] - expit(2 * grid)).mean()

    assert error(300) > 2 * error(30_000)
    assert error(30_000) < 0.03


# Calibration trees


def test_a_tree_without_evidence_for_a_split_is_platt_scaling(rng):
    rows = drawn(rng, [1, 20, 300, 2_000] * 5, slope=0.4, intercept=0.5)
    tree, platt = (each().fit_segments(rows) for each in (CalibrationTree, PlattScaling))
    is_line = np.diff(tree.knot_offsets) == 2
    assert is_line.mean() > 0.9
    same = np.repeat(is_line, np.diff(rows.offsets))
    assert np.array_equal(tree.apply_segments(rows)[same], platt.apply_segments(rows)[same])
    alone = CalibrationTree(max_depth=0).fit_segments(rows)
    assert np.array_equal(alone.apply_segments(rows), platt.apply_segments(rows))


def bent(rng, n):
    scores = rng.uniform(-4, 4, size=n)
    return join([(scores, rng.random(n) < expit(np.where(scores < 0, 0.2 * scores, 2 - scores)))])


def test_a_tree_finds_where_the_line_breaks(rng):
    old, new = bent(rng, 5_000), bent(rng, 5_000)
    maps = CalibrationTree().fit_segments(old)
    assert np.abs(maps.knot_scores).min() < 0.2
    assert new_row_nll(CalibrationTree(), old, new) < 0.97 * new_row_nll(PlattScaling(), old, new)


def by_region(rng, n):
    X, scores = rng.normal(size=(n, 4)), rng.normal(size=n)
    slope = np.where(X[:, 2] > 0.3, 3.0, np.where(X[:, 0] > 0, 0.0, 1.0))
    return X, scores, rng.random(n) < expit(slope * scores)


def test_leaves_over_features_are_platt_scalings_of_their_rows(rng):
    X, scores, y = by_region(rng, 4_000)
    weights = rng.choice([0.0, 1.0, 2.0], size=4_000)
    tree = CalibrationTree().fit(scores, y, weights, X=X)
    assert tree.feature_[0] == 2
    assert tree.threshold_[0] == pytest.approx(0.3, abs=0.1)
    assert tree.feature_[tree.left_[0]] == 0
    regions = [X[:, 2] > tree.threshold_[0]]
    regions += [
        ~regions[0] & side for side in ((X[:, 0] > tree.threshold_[1]), X[:, 0] <= tree.threshold_[1])
    ]
    z = tree.predict_log_odds(scores, X)
    for rows in regions:
        platt = PlattScaling().fit(scores[rows], y[rows], weights[rows])
        np.testing.assert_allclose(z[rows], platt.predict_log_odds(scores[rows]), rtol=1e-9, atol=1e-9)


def test_features_help_on_new_rows(rng):
    X, scores, y = by_region(rng, 4_000)
    X_new, new_scores, new_y = by_region(rng, 4_000)
    new = Segments(new_scores, new_y, [0, 4_000])
    tree = CalibrationTree().fit(scores, y, X=X).predict_log_odds(new_scores, X_new)
    platt = PlattScaling().fit(scores, y).predict_log_odds(new_scores)
    assert segment_nll(tree, new) < 0.95 * segment_nll(platt, new)


def test_noise_features_make_no_splits(rng):
    rows = drawn(rng, [1_000] * 20, slope=0.5)
    sizes = []
    for k in range(20):
        own = slice(rows.offsets[k], rows.offsets[k + 1])
        tree = CalibrationTree().fit(rows.scores[own], rows.targets[own], X=rng.normal(size=(1_000, 10)))
        sizes.append(len(tree.feature_))
    assert np.mean(np.array(sizes) == 1) > 0.9


def test_trees_from_files_are_checked(rng):
    X, scores, y = by_region(rng, 2_000)
    tree = CalibrationTree().fit(scores, y, X=X)
    assert len(tree.left_) > 3
    check(tree)
    check(CalibrationTree().fit(scores, y))
    for name, place, value in (("left_", 0, 0), ("left_", 0, len(tree.left_) - 1), ("feature_", 0, 4)):
        wrong = deepcopy(tree)
        getattr(wrong, name)[place] = value
        with pytest.raises(InconsistentModelError):
            check(wrong)


def test_trees_refuse_in_sentences(rng):
    X, scores, y = by_region(rng, 100)
    with pytest.raises(ValueError, match="max_depth must be from 0 to 5; got 6"):
        CalibrationTree(max_depth=6).fit(scores, y)
    with pytest.raises(ValueError, match="min_weight_leaf must be positive; got 0"):
        CalibrationTree(min_weight_leaf=0).fit(scores, y, X=X)
    with pytest.raises(ValueError, match=r"a row for each score, of shape \(100, n_features\)"):
        CalibrationTree().fit(scores, y, X=X[:50])
    tree = CalibrationTree().fit(scores, y, X=X)
    with pytest.raises(ValueError, match="fitted with 4 features: give predictions the same X"):
        tree.predict_proba(scores)
    with pytest.raises(ValueError, match=r"of shape \(100, 4\); got shape \(100, 3\)"):
        tree.predict_proba(scores, X[:, :3])
    with pytest.raises(ValueError, match="fitted without features"):
        CalibrationTree().fit(scores, y).predict_proba(scores, X)
