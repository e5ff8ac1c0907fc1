"""Every binary calibrator, found through the registry, obeys the same laws."""

import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dichotomies.calibrators.binary import (
    BINARY,
    ScoreMaps,
    Segments,
    cross_fitted_nll,
    segment_nll,
)
from tests.calibrators.binary.examples import AWKWARD, awkward, drawn, join, part

NAMES = BINARY.names()
every_calibrator = pytest.mark.parametrize("name", NAMES)
#: "auto" takes one method for all nodes, so that a node depends on the others.
every_calibrator_of_one_node = pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])


def mixed(rng, weighted=False):
    """The awkward segments and drawn ones, of sizes from 1 to 400."""
    few = drawn(rng, [1, 2, 3, 5, 8, 30, 100, 400], slope=0.4, intercept=0.5, digits=1)
    segments = join([*AWKWARD.values(), *((part(few, k).scores, part(few, k).targets) for k in range(8))])
    if not weighted:
        return segments
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=len(segments.scores))
    return Segments(segments.scores, segments.targets, segments.offsets, weights)


def answers(maps, scores):
    """Log-odds (len(scores), m) of every map."""
    out = np.repeat(np.asarray(scores, dtype=float)[:, None], len(maps), axis=1)
    maps.apply(out)
    return out


GRID = np.r_[-1e4, -100, np.linspace(-5, 5, 41), 100, 1e4]


@every_calibrator
@pytest.mark.parametrize("weighted", [False, True])
def test_log_odds_are_finite_whatever_the_segments(name, weighted, rng):
    segments = mixed(rng, weighted)
    maps = BINARY.create(name).fit_segments(segments)
    assert len(maps) == len(segments)
    assert np.isfinite(answers(maps, GRID)).all()
    assert np.isfinite(segment_nll(maps.apply_segments(segments), segments)).all()
    assert np.isfinite(cross_fitted_nll(BINARY.create(name), segments)).all()


@every_calibrator
def test_probabilities_are_never_0_or_1_among_the_calibration_scores(name):
    segments = awkward()
    p = expit(BINARY.create(name).fit_segments(segments).apply_segments(segments))
    learnt = np.repeat(segments.n_rows > 4 if name == "auto" else segments.n_rows > 0, segments.n_rows)
    calm = np.abs(segments.scores) < 36  # beyond, untouched log-odds already round to 1
    assert ((p > 0) & (p < 1))[learnt & calm].all()


@every_calibrator
def test_answers_do_not_fall_as_scores_rise(name, rng):
    segments = mixed(rng, weighted=True)
    maps = BINARY.create(name).fit_segments(segments)
    log_odds = answers(maps, np.sort(np.r_[GRID, segments.scores]))
    rising = np.array([each == "none" or BINARY.get(each).is_monotone for each in maps.names])
    rising |= (maps.names == "platt") & (maps.parameters[:, 0] >= 0)  # negative where the data say so
    assert rising.sum() > len(rising) / 2 or not BINARY.get(name).is_monotone
    slack = 1e-12 * (1 + np.abs(log_odds[1:]))
    assert (np.diff(log_odds, axis=0) >= -slack)[:, rising].all()


@every_calibrator_of_one_node
def test_all_nodes_together_equal_each_alone_bit_for_bit(name, rng):
    segments = mixed(rng, weighted=True)
    calibrator = BINARY.create(name)
    if not calibrator.nodes_are_independent:
        pytest.skip("fits all nodes together")
    together = answers(calibrator.fit_segments(segments), GRID)
    for k in range(len(segments)):
        assert np.array_equal(together[:, k], answers(calibrator.fit_segments(part(segments, k)), GRID)[:, 0])


@every_calibrator_of_one_node
def test_cross_fitting_does_not_look_at_neighbours(name, rng):
    segments = mixed(rng)
    if not BINARY.get(name).nodes_are_independent:
        pytest.skip("fits all nodes together")
    together = cross_fitted_nll(BINARY.create(name), segments)
    alone = [cross_fitted_nll(BINARY.create(name), part(segments, k))[0] for k in range(len(segments))]
    assert np.array_equal(together, alone)


@every_calibrator
def test_weight_2_is_the_row_twice_and_weight_0_is_no_row(name, rng):
    segments = drawn(rng, [1, 4, 20, 300], slope=0.4, intercept=0.5, digits=1)
    most = 1 if name == "auto" else 3  # auto may put a row that is there twice into two folds
    times = rng.integers(0, most, endpoint=True, size=len(segments.scores))
    parts = []
    for k in range(len(segments)):
        repeats = times[segments.offsets[k] : segments.offsets[k + 1]]
        parts.append((part(segments, k).scores.repeat(repeats), part(segments, k).targets.repeat(repeats)))
    weighted = Segments(segments.scores, segments.targets, segments.offsets, times.astype(float))
    by_weight = answers(BINARY.create(name).fit_segments(weighted), np.linspace(-5, 5, 41))
    by_row = answers(BINARY.create(name).fit_segments(join(parts)), np.linspace(-5, 5, 41))
    np.testing.assert_allclose(by_weight, by_row, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])  # its folds are dealt in order
def test_the_order_of_rows_does_not_matter(name, rng):
    segments = drawn(rng, [500], slope=0.4, intercept=0.5, digits=1)
    weights, shuffled = rng.random(500), rng.permutation(500)
    scores, targets = segments.scores, segments.targets
    one, other = (
        BINARY.create(name).fit(scores[rows], targets[rows], weights[rows]).predict_log_odds(GRID)
        for rows in (np.arange(500), shuffled)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@every_calibrator
def test_no_rows_and_no_weight_give_the_identity(name):
    segments = Segments([1.0, 2.0], [True, False], [0, 0, 2], [0.0, 0.0])
    maps = BINARY.create(name).fit_segments(segments)
    assert maps.names.tolist() == ["none", "none"]
    assert np.array_equal(answers(maps, GRID), np.column_stack([GRID, GRID]))
    assert len(BINARY.create(name).fit_segments(Segments([], [], [0]))) == 0


@every_calibrator
def test_calibration_helps_on_its_own_rows_and_on_new_ones(name, rng):
    old, new = (drawn(rng, [2_000, 1_000], slope=0.3, spread=4.0) for _ in range(2))
    maps = BINARY.create(name).fit_segments(old)
    for rows in (old, new):
        before, after = segment_nll(rows.scores, rows), segment_nll(maps.apply_segments(rows), rows)
        assert (after < 0.9 * before).all()


@every_calibrator
def test_on_its_own_rows_no_calibrator_is_worse_than_the_identity(name, rng):
    rows = drawn(rng, [50, 200, 1_000], slope=1.0)
    before = segment_nll(rows.scores, rows)
    after = segment_nll(BINARY.create(name).fit_segments(rows).apply_segments(rows), rows)
    assert (after < before + 0.1).all()  # 0.1 for the targets, which are not quite 0 and 1


@every_calibrator
def test_a_single_scorer_is_calibrated_like_a_node(name, rng):
    rows = drawn(rng, [500], slope=0.5, intercept=1.0)
    labels = np.where(rows.targets, "yes", "no")
    calibrator = BINARY.create(name).fit(rows.scores.tolist(), labels.tolist())
    expected = BINARY.create(name).fit_segments(rows).apply_segments(rows)
    assert np.array_equal(calibrator.predict_log_odds(rows.scores), expected)
    p = calibrator.predict_proba(rows.scores)
    assert p.shape == (500, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(p[:, 1], expit(expected))
    assert calibrator.classes_.tolist() == ["no", "yes"]


@every_calibrator
def test_calibrators_clone_and_refuse_in_sentences(name):
    calibrator = BINARY.create(name)
    assert clone(calibrator).get_params() == calibrator.get_params()
    with pytest.raises(NotFittedError):
        calibrator.predict_proba([1.0])
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"Scores must be finite; 1 are not, the first is scores\[1\]"):
            calibrator.fit([0.0, bad], [0, 1])
    with pytest.raises(ValueError, match=r"Scores must be one number per row"):
        calibrator.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="needs two labels; y has 3"):
        calibrator.fit([0.0, 1.0, 2.0], ["a", "b", "c"])
    with pytest.raises(ValueError, match="give booleans or 0 and 1"):
        calibrator.fit([0.0, 1.0], ["a", "a"])
    with pytest.raises(ValueError, match=r"finite and not negative, but sample_weight\[1\] is -1"):
        calibrator.fit([0.0, 1.0], [0, 1], [1.0, -1.0])
    with pytest.raises(ValueError, match="must be of one length"):
        calibrator.fit([0.0, 1.0], [0, 1, 1])


@every_calibrator
@pytest.mark.parametrize("only", [0, 1, False, True])
def test_one_side_alone_gives_a_likely_but_uncertain_answer(name, only):
    p = BINARY.create(name).fit([0.5, 1.0, 2.0], [only] * 3).predict_proba([0.7])[0, int(only)]
    # auto does not calibrate 3 rows; a factor cannot move 0; what is shrunk takes more rows to move
    if name not in ("auto", "temperature", "shrunk-platt"):
        assert 0.6 < p < 1
    assert 0 < p < 1


@every_calibrator
def test_maps_survive_pickling_and_their_arrays(name, rng):
    maps = BINARY.create(name).fit_segments(mixed(rng))
    expected = answers(maps, GRID)
    assert np.array_equal(answers(pickle.loads(pickle.dumps(maps)), GRID), expected)
    assert np.array_equal(answers(ScoreMaps(**maps.arrays()), GRID), expected)
