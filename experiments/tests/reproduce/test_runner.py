"""A run does what is not done yet, stores each result as it comes, and survives trials that fail."""

import os
import signal
import sqlite3
from dataclasses import replace

import pytest

from experiments.reproduce import runner
from experiments.reproduce.choice import FULL, PaperChoice, Protocol
from experiments.reproduce.stand_ins import paper_dataset
from experiments.reproduce.trial import PaperStore
from experiments.running import pool
from experiments.running.pool import RunSummary, Silent, WorkerKilledError
from experiments.running.result import METRICS
from experiments.tests.conftest import TRIAL

TRIALS = [replace(TRIAL, fold=fold) for fold in range(5)]
REAL = PaperChoice(
    [paper_dataset("optdigits")],
    ["naive_bayes"],
    ["none", "both_ir"],
    ["as-printed", "as-numbers-imply"],
    Protocol(repeats=1, trees=1, folds=3, fold_limit=2),
)


@pytest.fixture
def store(tmp_path):
    with PaperStore(tmp_path / "results.sqlite") as store:
        yield store


@pytest.fixture
def measured(monkeypatch, make_result):
    """The trials that were measured; those of fold 3 fail."""
    trials = []

    def measure(trial, *, folds, data_dir):
        trials.append(trial)
        if trial.fold == 3:
            raise ValueError("three is\ntoo many")
        return replace(make_result(), trial=trial)

    monkeypatch.setattr(runner, "measure", measure)
    return trials


def metrics_of(store):
    return {
        result.trial: [getattr(result, name) for name in (*METRICS, "n_train", "n_test", "n_features")]
        for result in store.rows()
    }


def test_what_is_finished_is_not_repeated(store, measured, make_result):
    store.add(replace(make_result(), trial=TRIALS[1]))
    summary = runner.run(TRIALS[:3], store)
    assert measured == [TRIALS[0], TRIALS[2]]
    assert summary == RunSummary(already=1, done=2, failed=0)
    assert runner.run(TRIALS[:3], store) == RunSummary(already=3, done=0, failed=0)
    assert len(measured) == 2


def test_a_run_with_nothing_left_writes_nothing(tmp_path, measured, monkeypatch):
    monkeypatch.setattr("experiments.running.store._PATIENCE", 0.01)
    with PaperStore(tmp_path / "results.sqlite") as store:
        runner.run(TRIALS[:2], store)
    other = sqlite3.connect(tmp_path / "results.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # from here on, writing is an error
    with PaperStore(tmp_path / "results.sqlite") as store:
        assert runner.run(TRIALS[:2], store) == RunSummary(already=2, done=0, failed=0)
    other.close()


def test_a_failing_trial_is_noted_in_words_and_tried_again(store, measured):
    assert runner.run(TRIALS, store) == RunSummary(already=0, done=4, failed=1)
    assert store.finished() == set(TRIALS) - {TRIALS[3]}
    (failure,) = store.failures()
    assert (failure.trial, failure.sentence) == (TRIALS[3], "ValueError: three is too many")
    runner.run(TRIALS, store)
    assert measured == [*TRIALS, TRIALS[3]]


def test_a_watcher_sees_results_after_they_are_stored(store, measured):
    seen = []

    class Watcher(Silent):
        def begin(self, waiting):
            seen.append(len(waiting))

        def finished(self, result):
            assert result.trial in store.finished()
            seen.append(result.trial.fold)

        def failed(self, trial, sentence):
            seen.append(sentence)

    runner.run(TRIALS, store, watcher=Watcher())
    assert seen == [5, 0, 1, 2, "ValueError: three is too many", 4]


def test_what_was_done_before_an_interrupt_is_kept(store, measured):
    class Impatient(Silent):
        def finished(self, result):
            if result.trial.fold == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(TRIALS, store, watcher=Impatient())
    assert store.finished() == set(TRIALS[:2])


def test_a_worker_killed_from_outside_is_said_in_a_sentence(store, monkeypatch):
    def attempt(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pool, "_attempt", attempt)
    with pytest.raises(WorkerKilledError, match="ended by the operating system"):
        runner.run(TRIALS, store, n_jobs=2)


def test_other_folds_are_refused(store, measured):
    runner.run(TRIALS[:1], store, folds=10)
    with pytest.raises(OSError, match="10 folds"):
        runner.run(TRIALS[:1], store, folds=5)


def test_runs_with_one_seed_are_identical_with_any_number_of_processes(tmp_path, data_dir):
    found = []
    for name, n_jobs in (("once", 1), ("again", 1), ("parallel", 2)):
        with PaperStore(tmp_path / name) as store:
            summary = runner.run(REAL.trials(), store, folds=3, n_jobs=n_jobs, data_dir=data_dir)
            assert summary == RunSummary(already=0, done=8, failed=0), store.failures()
            found.append(metrics_of(store))
    assert found[0] == found[1] == found[2]


def test_another_seed_gives_other_numbers_and_does_not_disturb_the_first(store, data_dir):
    runner.run(REAL.trials(), store, folds=3, data_dir=data_dir)
    first = metrics_of(store)
    assert len(first) == 8
    runner.run(replace(REAL, seed=1).trials(), store, folds=3, data_dir=data_dir)
    both = metrics_of(store)
    assert {trial: both[trial] for trial in first} == first
    assert all(both[replace(trial, seed=1)] != numbers for trial, numbers in first.items())


def test_schemes_and_readings_share_trees_and_splits(store, data_dir):
    runner.run(REAL.trials(), store, folds=3, data_dir=data_dir)
    assert store.failures() == []
    for fold in (0, 1):
        results = [result for result in store.rows() if result.trial.fold == fold]
        assert len({(result.mean_depth, result.n_test) for result in results}) == 1
        assert len({result.nll for result in results}) == 4


def test_trials_of_a_split_follow_each_other_and_none_comes_twice():
    trials = REAL.trials()
    assert len(set(trials)) == len(trials) == 8
    assert [trial.fold for trial in trials] == [0] * 4 + [1] * 4


def test_the_full_protocol_is_the_papers():
    choice = replace(REAL, protocol=FULL, subjects=[paper_dataset("letter"), paper_dataset("wordnet")])
    places = {(trial.dataset, trial.repeat, trial.fold) for trial in choice.trials()}
    assert places == {("letter", repeat, fold) for repeat in range(10) for fold in range(10)} | {
        ("wordnet", repeat, 0) for repeat in range(10)
    }


def test_logistic_regression_has_the_schemes_of_the_paper():
    choice = replace(REAL, bases=["logistic_regression"], schemes=["none", "external_vs", "both_ir"])
    assert {trial.scheme for trial in choice.trials()} == {"none", "external_vs"}
