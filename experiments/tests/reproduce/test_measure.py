"""A trial measured: its numbers are those of scikit-learn's metrics, its costs are its own."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, top_k_accuracy_score

from experiments import datasets
from experiments.reproduce import readings
from experiments.reproduce.measure import measure
from experiments.running import measurement
from experiments.running.memory import PeakMemory
from experiments.running.seeds import derived_seed
from experiments.tests.conftest import TRIAL

DIGITS = replace(TRIAL, dataset="optdigits", repeat=1, fold=2)


@pytest.fixture(scope="module")
def predicted(data_dir):
    """Labels and log-probabilities of the trial, made without any of the code that measures it."""
    dataset = datasets.load("optdigits", data_dir=data_dir)
    (split,) = [
        each
        for each in datasets.splits(dataset, seed=0, repeats=10, folds=3)
        if (each.repeat, each.fold) == (1, 2)
    ]
    clf = readings.classifier(DIGITS).fit(dataset.X[split.train_rows], dataset.y[split.train_rows])
    return dataset.y[split.test_rows], clf.predict_log_proba(dataset.X[split.test_rows])


def test_the_metrics_are_scikit_learns(predicted, data_dir):
    y, log_proba = predicted
    proba, own = np.exp(log_proba), log_proba[np.arange(len(y)), y]
    result = measure(DIGITS, folds=3, data_dir=data_dir)
    assert own.min() < np.log(1e-15)  # so that it matters what is clipped
    assert result.nll == pytest.approx(log_loss(y, np.maximum(proba, 1e-15)), rel=1e-9)
    assert result.nll_unclipped == pytest.approx(-own.mean())
    assert result.accuracy == accuracy_score(y, proba.argmax(axis=1))
    assert result.top5_accuracy == top_k_accuracy_score(y, proba, k=5)
    assert result.brier == pytest.approx(brier_score_loss(y, proba, scale_by_half=False))
    assert (result.n_test, result.n_classes, result.n_features) == (len(y), 10, 64)
    assert result.n_train == 400 - len(y)


def test_the_size_of_chunks_does_not_matter(monkeypatch, data_dir):
    whole = measure(DIGITS, folds=3, data_dir=data_dir)
    monkeypatch.setattr(measurement, "_CHUNK_BYTES", 8 * 10 * 7)  # seven rows
    assert measure(DIGITS, folds=3, data_dir=data_dir).nll == pytest.approx(whole.nll, rel=1e-12)


def test_what_the_classifier_warns_of_is_kept(data_dir):
    printed = replace(DIGITS, reading="as-printed", scheme="both_ps", repeat=0, fold=0)
    assert "VectorScalingML stopped" in measure(printed, folds=3, data_dir=data_dir).warnings
    assert measure(DIGITS, folds=3, data_dir=data_dir).warnings == ""


def test_a_fold_that_does_not_exist_is_said_so(data_dir):
    with pytest.raises(ValueError, match=r"'optdigits' has no fold 3 of repeat 0 .* 3 folds"):
        measure(replace(DIGITS, repeat=0, fold=3), folds=3, data_dir=data_dir)


def test_peak_memory_is_that_of_the_work_and_not_of_earlier_work():
    before = PeakMemory()
    block = np.ones(2**24)  # 128 MiB, touched
    with_block = before.megabytes()
    del block
    assert with_block - PeakMemory().megabytes() > 100


def test_seeds_are_stable_and_differ_by_every_part():
    assert derived_seed(0, "letter", 1, 2) == 437525954
    seeds = {derived_seed(a, b, c) for a in range(10) for b in ("x", "y") for c in (1, "1")}
    assert len(seeds) == 40
