"""A trial of the study is what users would get, and the same whenever it is run."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.metrics import log_loss

from dichotomies import NestedDichotomyClassifier
from experiments import datasets
from experiments.running.pool import RunSummary, Silent, run_all
from experiments.running.result import METRICS
from experiments.study.choice import StudyChoice
from experiments.study.classifiers import classifier
from experiments.study.data import prepared
from experiments.study.measure import measure
from experiments.study.trial import StudyStore, StudyTrial

DIGITS = StudyTrial("optdigits", "naive_bayes", "2-means", "both", 0)
CHOICE = StudyChoice(["optdigits"], ["naive_bayes"], ["random", "huffman"], ["none", "both"], repeats=2)


def numbers(result):
    return [getattr(result, name) for name in (*METRICS, "max_depth", "n_train", "n_test", "n_classes")]


def test_its_numbers_are_those_of_the_classifier_with_the_same_tree(study_data):
    result = measure(DIGITS, data_dir=study_data)
    data = prepared(DIGITS, study_data)
    ours = classifier(DIGITS).fit(data.X_train, data.y_train)
    plain = NestedDichotomyClassifier(
        ours.estimator,
        ours.tree_,
        internal_calibration="platt",
        external_calibration="vector",
        calibration_size=0.1,
        cv=3,
        random_state=ours.random_state,
    ).fit(data.X_train, data.y_train)
    proba = np.maximum(plain.predict_proba(data.X_test), 1e-15)
    assert result.nll == pytest.approx(log_loss(data.y_test, proba), rel=1e-6)
    assert (result.mean_depth, result.max_depth) == (plain.tree_.mean_depth, plain.tree_.max_depth)
    assert 0 <= result.grow_seconds <= result.fit_seconds


def test_structures_share_rows_and_calibrations_share_trees(study_data):
    kinds = [
        replace(DIGITS, structure=structure, calibration=calibration)
        for structure in ("random", "2-means")
        for calibration in ("none", "both")
    ]
    results = [measure(trial, data_dir=study_data) for trial in kinds]
    assert len({(result.n_train, result.n_test) for result in results}) == 1
    assert results[0].mean_depth == results[1].mean_depth
    assert results[0].nll != results[1].nll
    trees = [classifier(trial).fit(*prepared(trial, study_data)[:2]).tree_ for trial in kinds]
    assert trees[0] == trees[1] != trees[2] == trees[3]


def test_repeats_hold_out_other_rows_and_grow_other_random_trees(study_data):
    trials = [replace(DIGITS, structure="random", repeat=repeat) for repeat in (0, 1)]
    first, second = (prepared(trial, study_data) for trial in trials)
    assert not np.array_equal(first.X_test, second.X_test)
    trees = [classifier(trial).fit(first.X_train, first.y_train).tree_ for trial in trials]
    assert trees[0] != trees[1]


def test_each_learner_gets_features_of_its_kind(study_data):
    counts = datasets.load("reuters52", data_dir=study_data).split("train")[0]
    texts = {
        learner: prepared(replace(DIGITS, dataset="reuters52", learner=learner), study_data)
        for learner in ("logistic_regression", "naive_bayes", "boosted_trees")
    }
    assert (texts["naive_bayes"].X_train != counts).nnz == 0
    norms = np.sqrt(texts["logistic_regression"].X_train.power(2).sum(axis=1))
    assert norms == pytest.approx(1)
    assert not issparse(texts["boosted_trees"].X_train)
    standardised = prepared(replace(DIGITS, learner="logistic_regression"), study_data).X_train
    assert standardised.mean(axis=0) == pytest.approx(0, abs=1e-9)


@pytest.fixture
def run(tmp_path, study_data):
    """Run the trials into a store of this name, watched; what the store holds, and how it ended."""

    def run(name, watcher=None, **options):
        with StudyStore(tmp_path / name) as store:
            summary = run_all(
                CHOICE.trials(), store, partial(measure, data_dir=study_data), watcher=watcher, **options
            )
            assert store.failures() == []
            return {result.trial: numbers(result) for result in store.rows()}, summary

    return run


def test_a_study_interrupted_and_resumed_ends_as_one_left_in_peace(run):
    class Impatient(Silent):
        left = 3

        def finished(self, result):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run("interrupted", Impatient())
    resumed, summary = run("interrupted")
    assert summary == RunSummary(already=6, done=2, failed=0)
    peaceful, summary = run("peaceful")
    assert summary == RunSummary(already=0, done=8, failed=0)
    assert resumed == peaceful


def test_no_trial_is_begun_when_the_time_is_up(run):
    assert run("late", seconds=0.0) == ({}, RunSummary(already=0, done=0, failed=0, left=8))
    assert run("late", seconds=600.0)[1] == RunSummary(already=0, done=8, failed=0)
