"""Maps combine, refuse and cost what they should; folds are fair; auto respects sample size."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from dichotomies.calibrators.binary import (
    BINARY,
    Auto,
    IsotonicCalibration,
    PlattScaling,
    ScoreMaps,
    Segments,
    cross_fitted_nll,
    segment_nll,
)
from dichotomies.calibrators.binary.base import folds
from tests.calibrators.binary.examples import awkward, drawn, join


def test_identity_changes_nothing(rng):
    scores = rng.normal(size=(7, 4))
    kept = scores.copy()
    ScoreMaps.identity(4).apply(scores)
    assert np.array_equal(scores, kept)


def test_maps_applied_together_are_those_applied_one_by_one(rng):
    rows = drawn(rng, [30, 1, 50, 2, 70])
    smooth, affine = (BINARY.create(name).fit_segments(rows) for name in ("smooth-isotonic", "platt"))
    maps = smooth.where(np.array([True, True, False, True, True]), affine)
    scores = np.concatenate([5 * rows.scores, rows.scores])  # beyond the knots, and at the fitted scores
    for some in (scores[: len(rows.scores)], scores[len(rows.scores) :]):
        given = Segments(some, rows.targets, rows.offsets)
        found = np.split(maps.apply_segments(given), rows.offsets[1:-1])
        for k, part in enumerate(np.split(given.scores, rows.offsets[1:-1])):
            columns = np.repeat(part[:, None], 5, axis=1)
            maps.apply(columns)
            np.testing.assert_allclose(found[k], columns[:, k], rtol=1e-12, atol=1e-12)


def test_where_takes_each_map_from_one_side(rng):
    rows = drawn(rng, [30, 40, 50, 60, 70])
    all_maps = [BINARY.create(name).fit_segments(rows) for name in ("isotonic", "venn-abers", "beta")]
    chosen = np.array([True, False, True, True, False])
    grid = np.repeat(np.linspace(-4, 4, 33)[:, None], 5, axis=1)
    for one in all_maps:
        for other in all_maps:
            both = one.where(chosen, other)
            results = [grid.copy() for _ in range(3)]
            for maps, result in zip((both, one, other), results, strict=True):
                maps.apply(result)
            assert np.array_equal(results[0], np.where(chosen, results[1], results[2]))
            assert both.names.tolist() == np.where(chosen, one.names, other.names).tolist()


def test_columns_and_segments_are_mapped_alike():
    rows = awkward()
    for name in BINARY.names():
        maps = BINARY.create(name).fit_segments(rows)
        by_segment = maps.apply_segments(rows)
        columns = np.repeat(rows.scores[:, None], len(rows), axis=1)
        maps.apply(columns)
        own = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
        assert np.array_equal(by_segment, columns[np.arange(len(own)), own])


def test_wrong_shapes_are_refused_in_sentences():
    maps = ScoreMaps.identity(3)
    with pytest.raises(ValueError, match="a column for each of 3 maps"):
        maps.apply(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="float64 and C-contiguous"):
        maps.apply(np.zeros((3, 2)).T)
    with pytest.raises(ValueError, match="There are 3 maps, but 1 segments"):
        maps.apply_segments(Segments([1.0], [True], [0, 1]))
    with pytest.raises(ValueError, match="Offsets must increase from 0 to the number of scores, 1"):
        Segments([1.0], [True], [0, 2])
    with pytest.raises(ValueError, match="at least 2 folds"):
        cross_fitted_nll(PlattScaling(), Segments([1.0], [True], [0, 1]), n_folds=1)


def test_segment_nll_is_the_summed_log_loss(rng):
    rows = drawn(rng, [20, 300])
    weights = rng.random(320)
    rows = Segments(rows.scores, rows.targets, rows.offsets, weights)
    p = expit(rows.scores)
    expected = [
        log_loss(rows.targets[part], p[part], sample_weight=weights[part], normalize=False)
        for part in (slice(0, 20), slice(20, 320))
    ]
    np.testing.assert_allclose(segment_nll(rows.scores, rows), expected)
    assert segment_nll(np.array([-1e5]), Segments([0.0], [True], [0, 1]))[0] == 1e5


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_spread_either_side_evenly_and_not_in_order(n_folds, rng):
    rows = drawn(rng, [0, 1, 3, 17, 500], intercept=1.0)
    fold = folds(rows, n_folds)
    assert np.array_equal(fold, folds(rows, n_folds))
    for k in range(len(rows)):
        part = slice(rows.offsets[k], rows.offsets[k + 1])
        for side in (False, True):
            counts = np.bincount(fold[part][rows.targets[part] == side], minlength=n_folds)
            assert np.ptp(counts) <= 1
    assert not np.array_equal(fold[-n_folds * 2 : -n_folds], fold[-n_folds:])


def test_cross_fitted_maps_have_not_seen_the_row(rng):
    """Isotonic regression of noise looks good on its own rows and bad on others."""
    scores = rng.normal(size=200)
    rows = Segments(scores, np.arange(200) % 2 == 0, [0, 200])
    own = segment_nll(IsotonicCalibration().fit_segments(rows).apply_segments(rows), rows)
    assert cross_fitted_nll(IsotonicCalibration(), rows)[0] > 200 * np.log(2) > own[0]


def chosen(segments):
    return set(Auto().fit_segments(segments).names.tolist())


def test_auto_leaves_calibrated_scores_alone(rng):
    assert chosen(drawn(rng, [300] * 60)) == {"none"}


def test_auto_takes_one_method_for_all_nodes_that_suits_the_rows(rng):
    assert chosen(drawn(rng, [400] * 30, 0.5)) == {"shrunk-platt"}
    scores = rng.uniform(-3, 3, size=20_000)
    bumpy = join([(scores, rng.random(20_000) < np.where(np.abs(scores) < 2, 0.5, expit(3 * scores)))])
    assert chosen(bumpy) == {"smooth-isotonic"}


def test_auto_takes_only_what_is_among_its_candidates(rng):
    rows = drawn(rng, [400] * 3, slope=0.3)
    assert Auto(("none", "temperature")).fit_segments(rows).names.tolist() == ["temperature"] * 3
    assert Auto(("none",)).fit_segments(rows).names.tolist() == ["none"] * 3


def test_auto_is_not_much_worse_than_the_best_single_method_on_new_rows(rng):
    sizes = [5, 10, 20, 50, 100, 1_000, 5_000] * 4
    old, new = (drawn(rng, sizes, slope=0.4, intercept=0.7) for _ in range(2))

    def cost(name):
        return segment_nll(BINARY.create(name).fit_segments(old).apply_segments(new), new).sum()

    best = min(cost(name) for name in ("platt", "temperature", "beta", "isotonic"))
    assert cost("auto") < 1.01 * best
