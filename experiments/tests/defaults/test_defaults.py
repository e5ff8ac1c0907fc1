"""The study of defaults: trials are what users would get, and its tables are made of them alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from dichotomies import NestedDichotomyClassifier
from dichotomies.metrics import expected_calibration_error
from experiments.defaults import page
from experiments.defaults.choice import DefaultsChoice
from experiments.defaults.held_out import Outcome, divided, line, outcome
from experiments.defaults.measure import _calibrated_ece, measure, prepared
from experiments.defaults.trial import DefaultsResult, DefaultsStore, DefaultsTrial
from experiments.defaults.ways import BEFORE, FIXED, FLAT, NOW, PLAIN, WAYS, classifier
from experiments.running.measurement import N_BINS

TRIAL = DefaultsTrial("optdigits", "naive_bayes", NOW, 0, 0)


def made(way, nll, *, repeat=0, rows_per_class=0, learner="naive_bayes", accuracy=0.5, seconds=1.0):
    return DefaultsResult(
        replace(TRIAL, way=way, repeat=repeat, rows_per_class=rows_per_class, learner=learner),
        nll=nll,
        nll_unclipped=nll,
        accuracy=accuracy,
        top5_accuracy=0.75,
        ece=0.02,
        brier=0.25,
        mean_depth=3.5,
        n_train=90,
        n_test=2_000,
        n_classes=26,
        n_features=16,
        fit_seconds=seconds,
        predict_seconds=0.5,
        peak_memory_mb=100.0,
        warnings="",
        finished_at="2026-01-01T00:00:00+00:00",
        versions="{}",
        reported_nll=nll,
        chosen="platt+none",
        calibrated_ece=0.015,
    )


def everything(nll_now=1.1, **params):
    """Results of all ways: the best has an NLL of 1."""
    nll = {NOW: nll_now, BEFORE: 1.5, "platt+vector": 1.0}
    return [made(way, nll.get(way, 2.0), seconds=3.0 if way == NOW else 1.0, **params) for way in WAYS]


def test_the_default_is_what_a_user_gets_who_names_nothing(data_dir):
    result = measure(TRIAL, data_dir=data_dir)
    given = classifier(TRIAL).get_params(deep=False)
    plain = NestedDichotomyClassifier().get_params(deep=False)
    same = ("internal_calibration", "external_calibration", "calibration_size", "cv", "average_folds")
    assert {name: given[name] for name in same} == {name: plain[name] for name in same}
    assert result.reported_nll > 0
    assert "+" in result.chosen


def test_the_calibration_error_of_noise_is_that_of_classes_drawn_from_the_probabilities(rng):
    confidence = rng.beta(2, 1, size=3_000)
    drawn = [
        expected_calibration_error(rng.random(3_000) < confidence, confidence, n_bins=N_BINS)
        for _ in range(50)
    ]
    assert _calibrated_ece(confidence) == pytest.approx(np.mean(drawn), rel=0.1)


def test_ways_share_the_rows_and_the_tree(data_dir):
    results = [measure(replace(TRIAL, way=way), data_dir=data_dir) for way in (NOW, PLAIN, BEFORE)]
    assert len({(each.n_train, each.n_test, each.mean_depth) for each in results}) == 1
    assert len({each.nll for each in results}) == 3
    few = measure(replace(TRIAL, rows_per_class=2), data_dir=data_dir)
    assert few.n_train == 2 * few.n_classes


def test_rules_are_set_on_training_rows_alone(data_dir):
    data = prepared(TRIAL.dataset, TRIAL.learner, 0, 0, data_dir)
    parts = divided(data, 0)
    both = np.concatenate([parts.X_train, parts.X_test])
    assert len(both) == len(data.X_train)
    assert np.array_equal(np.sort(both.sum(axis=1)), np.sort(data.X_train.sum(axis=1)))
    found = outcome(parts, replace(TRIAL, rows_per_class=2))
    assert found.to_best > 0.999  # the default is one of the candidates
    assert found.to_best >= found.to_plain
    assert line(5, [Outcome(1.0, 0.5, -1.0), Outcome(1.21, 0.5, 0.0)]).startswith("| 5 | 2 | 1.100 | 1.21 |")


def test_the_flat_model_is_calibrated_out_of_fold(digits):
    X, y = digits
    flat = classifier(replace(TRIAL, way=FLAT, learner="logistic_regression")).fit(X[::2], y[::2])
    assert log_loss(y[1::2], np.exp(flat.predict_log_proba(X[1::2]))) < 0.3
    rare = [*np.flatnonzero(y > 0)[:100].tolist(), 0]  # the zero of the first row is the only one
    assert classifier(replace(TRIAL, way=FLAT)).fit(X[rare], y[rare]).calibrator_ is None


def test_results_of_a_way_can_be_forgotten(tmp_path):
    with DefaultsStore(tmp_path / "some.sqlite") as store:
        for each in (made(NOW, 1.0), made(NOW, 1.0, repeat=1), made(PLAIN, 2.0)):
            store.add(each)
        store.forget([replace(TRIAL, way=NOW), replace(TRIAL, way=BEFORE)])
        assert [(each.trial.way, each.trial.repeat) for each in store.rows()] == [(PLAIN, 0), (NOW, 1)]


def test_times_are_grouped_by_those_of_the_plain_fit():
    results = [replace(each, fit_seconds=each.fit_seconds / 100) for each in everything()]
    results += everything(learner="logistic_regression")
    lines = page.contents(results)["defaults/times"].splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == ["up to 0.03 s", "0.1 s or more"]
    assert all("| 3.0 | 3.0 | 3.0 | 3.0 |" in line for line in lines)
    # 90 rows are trained on, 2,000 predicted in half a second
    assert [line.split("|")[4].strip() for line in lines] == ["2.2", "0.0"]


def test_sentences_and_tables_are_of_complete_cases():
    results = [*everything(), *everything(1.3, repeat=1), *everything(rows_per_class=5)]
    results.append(made(NOW, 9.0, learner="logistic_regression"))  # without the other ways
    contents = page.contents(results)
    assert "1.200 times the NLL of the best way in hindsight" in contents["defaults/summary"]
    assert "The default takes 3.0 times the time of the plain fit" in contents["defaults/summary"]
    assert "The best fixed pair, platt and vector," in contents["defaults/summary"]
    assert (
        "in hindsight, in each case another, 0.020 and 0.020. Sampling noise" in contents["defaults/summary"]
    )
    assert "makes 0.015 and 0.015." in contents["defaults/summary"]
    assert "logistic" not in contents["defaults/cases"]
    assert (
        "| 5 | 1 | 0.550 | 0.550 | 0.750 | +0.00 | +0.00 | 1 | +0.00 | +0.00 | 1.1 |"
        in contents["defaults/few"]
    )


def test_honesty_is_drawn_from_the_default_alone(tmp_path):
    page.draw_honesty(everything(), tmp_path / "honesty.svg")
    assert (tmp_path / "honesty.svg").stat().st_size > 1_000


def test_every_way_is_run_where_it_can_be():
    trials = DefaultsChoice(["letter", "clinc150"], repeats=2).trials()
    assert len(set(trials)) == len(trials)
    assert {each.way for each in trials} == set(WAYS)
    assert {each.dataset for each in trials if each.learner == "boosted_trees"} == {"letter"}
    assert all(each.learner == "logistic_regression" for each in trials if each.way == FLAT)
    assert {each.repeat for each in trials if each.rows_per_class} == {0}
    assert set(FIXED) < set(WAYS)


def test_results_are_stored_and_found_again(tmp_path):
    with DefaultsStore(tmp_path / "store.sqlite") as store:
        store.add(made(NOW, 1.0))
        assert store.finished() == {TRIAL}
        assert store.rows() == [made(NOW, 1.0)]
