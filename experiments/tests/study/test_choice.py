"""The study runs everything that no limit leaves out, the cheap first, once before it is repeated."""

import numpy as np
import pytest

from dichotomies.structures import STRUCTURES
from experiments import datasets
from experiments.reproduce.trial import PaperStore
from experiments.running.store import StoreError
from experiments.structures import EXPERIMENTAL
from experiments.study import choice as choosing
from experiments.study import limits
from experiments.study.choice import StudyChoice, seconds_of
from experiments.study.classifiers import CALIBRATIONS, HIERARCHIES, LEARNERS, structures
from experiments.study.data import limited
from experiments.study.limits import DATASETS, JUDGING, LIMITS, Limit
from experiments.study.trial import StudyStore

WHOLE = StudyChoice(DATASETS, LEARNERS, structures(), tuple(CALIBRATIONS))


def test_every_trial_is_run_once_and_every_structure_and_dataset_is_there():
    trials = WHOLE.trials()
    assert len(set(trials)) == len(trials)
    assert {trial.structure for trial in trials} == {*STRUCTURES.names(), *EXPERIMENTAL} - {"auto"}
    assert {trial.dataset for trial in trials} == set(DATASETS)


def test_hierarchies_are_grown_only_where_labels_name_groups():
    found = {trial.dataset for trial in WHOLE.trials() if trial.structure == "hierarchy"}
    assert found == set(HIERARCHIES)


def test_nothing_is_repeated_before_everything_was_run_once_and_cheap_trials_come_first():
    trials = WHOLE.trials()
    once = [trial for trial in trials if trial.repeat == 0]
    assert trials[: len(once)] == once
    plain = [trial for trial in once if trial.structure not in JUDGING]
    assert once[: len(plain)] == plain
    seconds = [seconds_of((trial.dataset, trial.learner, "random")) for trial in plain]
    assert seconds == sorted(seconds)


def test_every_trial_has_a_time_to_be_expected():
    seconds = [seconds_of(trial.kind()) for trial in WHOLE.trials()]
    assert 0 < min(seconds) <= max(seconds) < float("inf")


def test_every_trial_has_its_random_tree_to_be_compared_with():
    trials = set(WHOLE.trials())
    assert all(type(t)(t.dataset, t.learner, "random", t.calibration, t.repeat) in trials for t in trials)


def test_trials_that_share_data_follow_each_other():
    places = [(t.repeat > 0, t.structure in JUDGING, t.dataset, t.learner, t.repeat) for t in WHOLE.trials()]
    blocks = [place for place, before in zip(places, [None, *places], strict=False) if place != before]
    assert len(blocks) == len(set(blocks))


def test_limits_are_of_names_that_there_are():
    for limit in LIMITS:
        assert set(limit.datasets) <= set(DATASETS) <= set(datasets.DATASETS.names())
        assert set(limit.learners) <= set(LEARNERS)
        assert set(limit.structures) <= set(structures())
        assert limit.left_out or limit.rows or limit.classes


def test_the_narrowest_limit_holds(monkeypatch):
    made = (
        Limit("a", "b", rows=50),
        Limit("a", "b", datasets=("letter",), rows=20, classes=9),
        Limit("a", "b", learners=("naive_bayes",), structures=("ward",), left_out=True),
    )
    monkeypatch.setattr(limits, "LIMITS", made)
    assert [limits.most_rows(name, "naive_bayes") for name in ("letter", "nhcd")] == [20, 50]
    assert [limits.most_classes(name, "naive_bayes") for name in ("letter", "nhcd")] == [9, None]
    assert limits.left_out("letter", "naive_bayes", "ward")
    assert not limits.left_out("letter", "boosted_trees", "ward")
    assert not limits.left_out("letter", "naive_bayes", "random")


def test_fewer_classes_and_rows_keep_a_row_of_every_class_left():
    y = np.repeat(np.arange(8), np.arange(3, 11) * 4)
    split = datasets.cross_validation(y, repeats=1, folds=4)[0]
    fewer = limited(split, y, 5, 20, seed=0)
    assert len(fewer.train_rows) == 20
    assert set(y[fewer.train_rows]) == set(y[fewer.test_rows])
    assert len(set(y[fewer.train_rows])) == 5
    assert set(fewer.train_rows) <= set(split.train_rows)
    assert limited(split, y, None, None, seed=0).train_rows.tolist() == split.train_rows.tolist()


def test_a_store_takes_one_set_of_limits(tmp_path, monkeypatch):
    with StudyStore(tmp_path / "results.sqlite") as store:
        WHOLE.settle(store)
        WHOLE.settle(store)
        monkeypatch.setattr(choosing.limits, "most_rows", lambda *_: 7)
        with pytest.raises(StoreError, match=r"made with \d+ rows at most of .*, not 7"):
            WHOLE.settle(store)


def test_stores_of_the_paper_and_of_the_study_are_told_apart(tmp_path):
    StudyStore(tmp_path / "study.sqlite").close()
    PaperStore(tmp_path / "paper.sqlite").close()
    for kind, name in ((PaperStore, "study.sqlite"), (StudyStore, "paper.sqlite")):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StoreError, match="holds results of another kind"):
            kind(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
