"""Fits reach the optimum of the written objective, as found by scikit-learn and scipy."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from dichotomies.calibrators.multiclass import MULTICLASS, _likelihood
from dichotomies.calibrators.multiclass._bend import Bend, best_bend
from dichotomies.calibrators.multiclass._calibration_rows import LOWEST, CalibrationRows, log_odds
from dichotomies.calibrators.multiclass._noise import best_noise, mix
from tests.calibrators.multiclass.test_contract import nll, sample


def reference(x, y, unpack, start):
    """The lowest mean NLL of softmax(scale x + bias) that scipy finds."""
    onehot = np.eye(x.shape[1])[y]

    def objective(theta):
        scale, bias = unpack(theta)
        return -(onehot * log_softmax(scale * x + bias, axis=1)).sum() / len(y)

    return minimize(objective, start, method="BFGS", options={"gtol": 1e-7}).fun


@pytest.mark.parametrize("on", ["log_proba", "log_odds"])
def test_vector_ml_meets_the_optimum_conditions(on, rng):
    x, y = sample(rng, n_rows=2_000, n_classes=6)
    calibrator = MULTICLASS.create("vector-ml", on=on, tol=1e-15).fit(x, y)
    z = log_odds(x.copy()) if on == "log_odds" else x
    residual = calibrator.predict_proba(x) - np.eye(6)[y]
    np.testing.assert_allclose(residual.sum(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose((z * residual).sum(axis=0), 0, atol=1e-3)


def test_vector_ml_reaches_the_nll_of_scipy(rng):
    x, y = sample(rng, n_rows=600, n_classes=3)
    best = reference(x, y, lambda t: (t[:3], t[3:]), np.r_[np.ones(3), np.zeros(3)])
    assert nll(MULTICLASS.create("vector-ml").fit(x, y).predict_log_proba(x), y) == pytest.approx(
        best, abs=1e-6
    )


def test_bias_temperature_reaches_the_nll_of_scipy(rng):
    x, y = sample(rng, n_rows=600, n_classes=3)
    best = reference(x, y, lambda t: (t[0], t[1:]), np.r_[1.0, np.zeros(3)])
    found = MULTICLASS.create("bias-temperature").fit(x, y).predict_log_proba(x)
    assert nll(found, y) == pytest.approx(best, abs=1e-6)


def test_vector_with_a_wide_prior_is_maximum_likelihood_and_with_a_narrow_one_temperature(rng):
    x, y = sample(rng, n_rows=600)
    wide = MULTICLASS.create("vector", spread=(1e3, 1e3)).fit(x, y)
    narrow = MULTICLASS.create("vector", spread=(1e-6, 1e-6)).fit(x, y)
    ml, temperature = MULTICLASS.create("vector-ml").fit(x, y), MULTICLASS.create("temperature").fit(x, y)
    np.testing.assert_allclose(wide.predict_proba(x), ml.predict_proba(x), atol=1e-3)
    np.testing.assert_allclose(narrow.predict_proba(x), temperature.predict_proba(x), atol=1e-3)


def _started(rng, name, **params):
    """Log-probabilities by a fit that starts from one of fewer rows and classes, and by one that does not."""
    x, y = sample(rng, n_rows=2_000, n_classes=6)
    columns, few = np.array([4, 0, -1, 1, 3, 2]), np.flatnonzero(y != 2)[:900]
    there = x[few][:, np.argsort(columns)[1:]]
    before = MULTICLASS.create(name, **params).fit(there, columns[y[few]])
    found = MULTICLASS.create(name, **params).fit_from(before, columns, x, y)
    afresh = MULTICLASS.create(name, **params).fit(x, y)
    return found.predict_log_proba(x), afresh.predict_log_proba(x), y


@pytest.mark.parametrize("name", MULTICLASS.names())
def test_a_fit_that_starts_from_another_is_as_good(name, rng):
    started, afresh, y = _started(rng, name)
    assert nll(started, y) == pytest.approx(nll(afresh, y), abs=1e-4)


def test_under_a_given_prior_a_fit_does_not_depend_on_its_start(rng):
    started, afresh, _ = _started(rng, "vector", spread=(0.2, 0.3), tol=1e-10)
    np.testing.assert_allclose(started, afresh, atol=1e-4)


def test_a_start_at_the_optimum_takes_fewer_steps(rng):
    x, y = sample(rng, n_rows=2_000, n_classes=6)
    afresh = MULTICLASS.create("vector").fit(x, y)
    again = MULTICLASS.create("vector").fit_from(afresh, np.arange(6), x, y)
    assert again.n_iter_ < afresh.n_iter_


def test_temperature_agrees_with_scikit_learn(digits):
    X, y = digits
    model = LogisticRegression(max_iter=300, C=100).fit(X[:600], y[:600])
    theirs = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(X[600:], y[600:])
    x = model.predict_log_proba(X[600:])
    ours = MULTICLASS.create("temperature").fit(x, y[600:])
    expected = nll(np.log(theirs.predict_proba(X[600:])), y[600:])
    assert nll(ours.predict_log_proba(x), y[600:]) == pytest.approx(expected, abs=1e-6)


def test_temperature_keeps_the_most_probable_class(rng):
    x, y = sample(rng)
    result = MULTICLASS.create("temperature").fit(x, y).predict_log_proba(x)
    assert np.array_equal(result.argmax(axis=1), x.argmax(axis=1))


def test_separated_rows_get_a_moderate_temperature():
    x = log_softmax(np.eye(5) * 2, axis=1)
    assert 1 < MULTICLASS.create("temperature").fit(x, np.arange(5)).scale_ < 10


def test_absent_classes_keep_the_common_scale_and_no_bias(rng):
    x, y = sample(rng, n_rows=600, n_classes=5)
    x, y = x[y != 2], y[y != 2]
    temperature = MULTICLASS.create("temperature").fit(x, y)
    ml = MULTICLASS.create("vector-ml").fit(x, y)
    assert (ml.scale_[2], ml.bias_[2]) == (pytest.approx(temperature.scale_), 0)
    assert MULTICLASS.create("bias-temperature").fit(x, y).bias_[2] == 0


def test_single_precision_passes_agree_with_double_and_not_on_threads(rng, monkeypatch):
    x, y = sample(rng, n_rows=900, n_classes=37)
    x[::5, 3] = -np.inf
    rows = CalibrationRows.read(x, y, rng.uniform(0, 2, len(y)))
    scale, bias = rng.uniform(0.5, 1.5, 37), rng.normal(size=37)
    value, sums = _likelihood.Likelihood(rows).class_sums(scale, bias)
    by_scale = _likelihood.Likelihood(rows).scale_sums(0.7)
    monkeypatch.setattr(_likelihood, "DOUBLE_UP_TO", 0)
    one, two = (_likelihood.Likelihood(rows, n_jobs).class_sums(scale, bias) for n_jobs in (1, 2))
    assert one[0] == two[0]
    assert np.array_equal(one[1], two[1])
    assert one[0] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(one[1], sums, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(_likelihood.Likelihood(rows).scale_sums(0.7), by_scale, rtol=1e-5)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("scales", "bias"), [((0.1, 0.2), 1.0), ((3.0, 3.1), 1.0), ((-2.0, 9.0), 50.0)])
def test_sums_and_probabilities_are_those_of_scipy_however_far_apart_the_entries_are(
    rng, monkeypatch, scales, bias, single
):
    monkeypatch.setattr(_likelihood, "DOUBLE_UP_TO", 0 if single else 2**15)
    x, y = sample(rng, n_rows=200, n_classes=5)
    x = log_softmax(10 * x, axis=1)
    likelihood = _likelihood.Likelihood(CalibrationRows.read(x, y, np.ones(200)))
    scale, bias = rng.uniform(*scales, 5), bias * rng.normal(size=5)
    expected = log_softmax(np.maximum(x, LOWEST) * scale + bias, axis=1)
    own = expected[np.arange(200), y]
    tolerance = {"rtol": 1e-4, "atol": 1e-3} if single else {"rtol": 1e-9, "atol": 1e-12}
    value, sums = likelihood.class_sums(scale, bias)
    np.testing.assert_allclose(value, -own.sum(), **tolerance)
    np.testing.assert_allclose(sums[0], np.exp(expected).sum(axis=0), **tolerance)
    np.testing.assert_allclose(likelihood.own_log_proba(scale, bias), own, **tolerance)
    some = np.arange(200) % 3 == 0
    np.testing.assert_allclose(likelihood.take(some).log_proba(scale, bias), expected[some], **tolerance)
    np.testing.assert_allclose(
        likelihood.take(some).class_sums(scale, bias)[0], -own[some].sum(), **tolerance
    )


def test_large_problems_reach_the_optimum_in_single_precision(rng, monkeypatch):
    x, y = sample(rng, n_rows=3_000, n_classes=10)
    double = MULTICLASS.create("vector-ml").fit(x, y)
    monkeypatch.setattr(_likelihood, "DOUBLE_UP_TO", 0)
    single = MULTICLASS.create("vector-ml").fit(x, y)
    assert nll(single.predict_log_proba(x), y) == pytest.approx(nll(double.predict_log_proba(x), y), abs=1e-6)


def test_non_convergence_is_reported_once(rng):
    x, y = sample(rng)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations") as caught:
        calibrator = MULTICLASS.create("vector-ml", max_iter=1).fit(x, y)
    assert len(caught) == 1
    assert not calibrator.converged_
    assert calibrator.n_iter_ == 1


def test_log_odds_are_exact_next_to_certainty():
    x = np.array([[-1e-30, -80.0, -90.0], [np.log(0.25), np.log(0.25), np.log(0.5)]])
    found = log_odds(x.copy())
    assert found[0, 0] == pytest.approx(80 - np.log1p(np.exp(-10)))
    np.testing.assert_allclose(found[1], np.log([1 / 3, 1 / 3, 1]), atol=1e-12)


def test_isotonic_is_never_certain_by_laplaces_rule():
    x = np.log([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]])
    calibrator = MULTICLASS.create("isotonic").fit(x, [0, 0, 1, 1])
    np.testing.assert_allclose(calibrator.predict_proba(x)[:, 0], [0.75, 0.75, 0.25, 0.25])


@pytest.mark.slow
def test_on_cifar100_the_penalised_form_is_best(real_data):
    data = real_data("cifar100_probs")
    x, y = np.log(data.X), data.y.astype(int)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(y))
        fitted, held_out = order[:5_000], order[5_000:]
        loss = {
            name: nll(
                MULTICLASS.create(name).fit(x[fitted], y[fitted]).predict_log_proba(x[held_out]), y[held_out]
            )
            for name in ("temperature", "vector", "vector-ml")
        }
        assert loss["vector"] <= min(loss["temperature"], loss["vector-ml"])


@pytest.mark.slow
def test_with_few_rows_the_penalised_form_stays_close_to_temperature(real_data):
    data = real_data("cifar100_probs")
    x, y = np.log(data.X), data.y.astype(int)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        few, held_out = order[:51], order[5_000:]
        vector, temperature = (
            nll(MULTICLASS.create(name).fit(x[few], y[few]).predict_log_proba(x[held_out]), y[held_out])
            for name in ("vector", "temperature")
        )
        assert vector < 1.1 * temperature
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MULTICLASS.create("auto").fit(x[few], y[few])


def under_confident(rng, n_rows):
    """Log-probabilities that are right but where they are nearly certain: there they are too low."""
    x = log_softmax(3 * rng.normal(size=(n_rows, 5)), axis=1)
    truth = log_softmax(0.7 * x + 2.5 * np.exp(x), axis=1)
    return x, np.argmax(truth + rng.gumbel(size=x.shape), axis=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_bend_is_the_optimum_that_scipy_finds(rng, dtype):
    x, y = under_confident(rng, 4_000)
    weight = rng.choice([0.0, 1.0, 2.0], size=len(y))
    found = best_bend(x.astype(dtype), y, weight)

    def objective(point):
        z = log_softmax(point[0] * x + point[1] * np.exp(x), axis=1)
        prior = ((point[0] - 1) / 0.3) ** 2 + point[1] ** 2
        return -weight @ z[np.arange(len(y)), y] + prior / 2

    expected = minimize(objective, [1.0, 0.0], tol=1e-10).x
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_a_bend_keeps_the_order_of_classes_and_never_sharpens_all_of_them(rng):
    x, y = under_confident(rng, 2_000)
    bent = Bend(*best_bend(x, y, np.ones(len(y)))).apply(x.copy())
    assert np.array_equal(np.argsort(bent, axis=1), np.argsort(x, axis=1))
    assert best_bend(0.5 * x, x.argmax(axis=1), np.ones(len(y))).exponent <= 1
    overconfident = log_softmax(3 * x, axis=1)
    assert best_bend(overconfident, y, np.ones(len(y))).sharpness >= 0


def test_vector_odds_are_less_wrong_where_a_model_is_unsure_of_what_is_nearly_certain(rng):
    x, y = under_confident(rng, 6_000)
    bent = MULTICLASS.create("vector-odds").fit(x[:3_000], y[:3_000])
    straight = MULTICLASS.create("vector-odds").fit(x[:3_000], y[:3_000])
    straight.bend_ = (1.0, 0.0)
    losses = [nll(each.predict_log_proba(x[3_000:]), y[3_000:]) for each in (bent, straight)]
    assert losses[0] < losses[1]


def test_a_bend_at_its_bounds_is_the_optimum_that_scipy_finds(rng):
    x = log_softmax(2 * rng.normal(size=(3_000, 6)), axis=1)
    y = np.argmax(log_softmax(1.3 * x - 0.5 * np.exp(x), axis=1) + rng.gumbel(size=x.shape), axis=1)

    def objective(point):
        z = log_softmax(point[0] * x + point[1] * np.exp(x), axis=1)
        return nll(z, y) * len(y) + (((point[0] - 1) / 0.3) ** 2 + point[1] ** 2) / 2

    expected = minimize(objective, [0.9, 0.1], bounds=[(0.1, 1), (0, None)], tol=1e-10).x
    np.testing.assert_allclose(best_bend(x, y, np.ones(len(y))), expected, atol=0.01)


# ------------------------------------------------------------------ rows that the scores say nothing about


def test_the_share_of_noise_is_the_optimum_that_scipy_finds(rng):
    own, weight = np.log(rng.beta(2, 1, size=500)), rng.choice([0.0, 1.0, 2.0], size=500)
    own[:60] = -np.inf

    def objective(e):
        return -weight @ np.log((1 - e) * np.exp(own) + e / 8) - np.log(e) - np.log(1 - e)

    expected = minimize_scalar(objective, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
    found = best_noise(own, weight, 8)
    assert found.share == pytest.approx(expected.x, rel=1e-4)
    assert found.log_posterior == pytest.approx(-expected.fun)
    assert (found.trust[:60] < 1e-100).all()
    assert weight @ (1 - found.trust) == pytest.approx(found.share * (weight.sum() + 2) - 1, rel=1e-4)


def test_without_any_noise_its_share_is_that_of_laplaces_rule():
    assert best_noise(np.zeros(98), np.ones(98), 10**9).share == pytest.approx(1 / 100, rel=1e-4)
    assert 0 < best_noise(np.zeros(5), np.zeros(5), 3).share < 1


def test_wrong_labels_do_not_lower_the_scales(rng):
    x = log_softmax(3 * rng.normal(size=(4_000, 8)), axis=1)
    y = np.argmax(x + rng.gumbel(size=x.shape), axis=1)
    wrong = rng.random(len(y)) < 0.2
    noisy = np.where(wrong, rng.integers(8, size=len(y)), y)
    clean, found = (MULTICLASS.create("vector-odds").fit(0.5 * x, labels) for labels in (y, noisy))
    assert clean.noise_ < 0.02
    assert found.noise_ == pytest.approx(0.2, abs=0.03)
    np.testing.assert_allclose(found.scale_, clean.scale_, rtol=0.15)
    assert (
        MULTICLASS.create("vector", on="log_odds").fit(0.5 * x, noisy).common_scale_
        < 0.6 * clean.scale_.min()
    )
    truth = mix(x.copy(), 0.2)
    assert nll(found.predict_log_proba(0.5 * x), noisy) < 1.01 * nll(truth, noisy)


def test_noise_bounds_probabilities_and_keeps_their_order(rng):
    x, y = sample(rng, n_rows=400, n_classes=5)
    calibrator = MULTICLASS.create("vector-odds").fit(x, y)
    extreme = np.array([[0.0, -1e6, -1e6, -1e6, -1e6], [0.0, -1.0, -2.0, -3.0, -4.0]])
    found = calibrator.predict_proba(extreme)
    assert found.min() >= 0.999 * calibrator.noise_ / 5
    assert calibrator.noise_ >= 0.999 / 402
    mixed = mix(x.copy(), 0.1)
    assert np.array_equal(np.argsort(mixed, axis=1), np.argsort(x, axis=1))
    np.testing.assert_allclose(np.exp(mixed), 0.9 * np.exp(x) + 0.02)


def test_half_of_a_row_unlike_any_other_is_noise(rng):
    x, y = sample(rng, n_rows=400, n_classes=5)
    calibrator = MULTICLASS.create("vector-odds").fit(x, y)
    lowest = log_softmax(x, axis=1).min()
    assert calibrator.lowest_ == pytest.approx(lowest * (1 + 1 / np.log(400)))
    # normalised, a little above the bound and a little below it
    rows = np.array([[0.0, 0.0, 0.0, 0.0, bound] for bound in (calibrator.lowest_ + 2, calibrator.lowest_)])
    like, unlike = calibrator.predict_proba(rows)
    assert calibrator.noise_ / 5 < like[4] < 0.01
    assert unlike[4] == pytest.approx(0.5 / 5, rel=0.05)


def test_rows_without_weight_do_not_say_what_is_familiar(rng):
    x, y = sample(rng, n_rows=400, n_classes=5)
    weight = (log_softmax(x, axis=1).min(axis=1) > -3).astype(float)
    calibrator = MULTICLASS.create("vector-odds").fit(x, y, weight)
    assert -3 * (1 + 1 / np.log(weight.sum())) <= calibrator.lowest_ < -1


def test_models_of_version_0_2_keep_their_bound_and_have_no_noise(rng):
    x, y = sample(rng, n_rows=400, n_classes=5)
    old = MULTICLASS.create("vector-odds").fit(x, y)
    del old.noise_, old.lowest_
    old.floor_, old.bend_ = -3.0, (1.0, 0.0)
    expected = log_softmax(old.scale_ * log_odds(np.maximum(x, -3.0)) + old.bias_, axis=1)
    np.testing.assert_allclose(old.predict_log_proba(x), expected, atol=1e-12)
