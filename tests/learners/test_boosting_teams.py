"""Several threads train a node together: the same trees as by one."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from dichotomies._common import parallel
from dichotomies._kernels import compile as kernels
from dichotomies._kernels.boosting.team import Team
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier, nodes
from tests.uncalibrated import Uncalibrated

WAYS = {
    "defaults": HistGradientBoostClassifier(),
    "every feature of every row": HistGradientBoostClassifier(20, subsample=1.0, max_tree_features=1.0),
    "few features at a split": HistGradientBoostClassifier(20, max_tree_features=1.0, max_features=0.4),
    "by depth": HistGradientBoostClassifier(20, max_leaf_nodes=None, max_depth=5, min_samples_leaf=3),
    "stumps": HistGradientBoostClassifier(20, max_depth=1),
    "categories": HistGradientBoostClassifier(20, categorical_features=[3], max_tree_features=1.0),
    "early stopping": HistGradientBoostClassifier(20, early_stopping=True),
    "nothing to split": HistGradientBoostClassifier(20, min_child_weight=1e9),
}


@pytest.fixture
def asked(monkeypatch):
    """Numbers of threads that nodes are trained with, however small they are and busy the machine is."""
    found, train = [], nodes.allocate_rooms

    def noted(n_threads, *arguments, **names):
        found.append(n_threads)
        return train(n_threads, *arguments, **names)

    monkeypatch.setattr(kernels, "PATIENCE", -1.0)
    monkeypatch.setattr(parallel, "_WORTH_DIVIDING", 0.0)
    monkeypatch.setattr(parallel, "cpu_count", lambda: 64)
    monkeypatch.setattr(nodes, "_ENOUGH", 0.0)
    monkeypatch.setattr(nodes, "allocate_rooms", noted)
    return found


@pytest.fixture
def table(rng):
    """Ties between features, missing values, categories, few distinct values; binary target, weights."""
    n = 1_003
    X = rng.integers(0, 9, size=(n, 7)).astype(float)
    target = X[:, 0] * X[:, 1] + 3 * (X[:, 3] % 3) + rng.normal(0, 6, size=n) > 20
    X[:, 5] = X[:, 0]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, target, rng.uniform(0.1, 3, size=n)


def _alone_and_together(estimator, n_jobs, X, y, weight=None):
    models = [type(estimator)(**estimator.get_params()).set_params(n_jobs=n) for n in (1, n_jobs)]
    return [model.fit(X, y, weight)._trees for model in models]


def _assert_equal(trees, others):
    for name in ("base", "column", "leaf", "limit", "kind", "categories", "split_offsets", "tree_offsets"):
        assert_array_equal(getattr(trees, name), getattr(others, name), err_msg=name)
    assert_array_equal(trees.value, others.value)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("n_jobs", [2, 3, 9])
def test_the_number_of_threads_changes_no_tree(asked, table, name, n_jobs):
    alone, together = _alone_and_together(WAYS[name], n_jobs, *table)
    has_more_models = name == "early stopping" and n_jobs < 4
    assert asked[-1] == (1 if has_more_models else n_jobs)  # the team did not give up
    assert (len(alone.column) > 15) == (name != "nothing to split")
    _assert_equal(alone, together)


def test_splits_that_are_tied_in_a_chain_are_compared_as_by_one_thread(asked):
    # three features split the same rows but for pairs of tiny weight: each gain is tied with the next one's,
    # by the tolerance of ties, but the first one not with the last one's
    side = [0] * 8 + [1] * 8
    y, weight, columns = [1] * 6 + [0] * 2 + [1] * 2 + [0] * 6, [1.0] * 16, [list(side) for _ in range(3)]
    for feature, step in enumerate((2e-9, 4.9e-7, 6.92e-7)):
        for half, label in ((0, 1), (0, 0), (1, 1), (1, 0)):
            y.append(label)
            weight.append(2 * step)
            for f, column in enumerate(columns):
                column.append(0 if f == feature else half)
    X = np.array(columns[::-1], dtype=float).T
    for n_jobs in (2, 3):
        estimator = HistGradientBoostClassifier(
            5, max_leaf_nodes=2, subsample=1.0, max_tree_features=1.0, l2_regularization=0
        )
        _assert_equal(*_alone_and_together(estimator, n_jobs, X, np.array(y), np.array(weight)))
        assert n_jobs in asked


@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_more_threads_than_rows(asked, n_rows):
    X, y = np.arange(2.0 * n_rows).reshape(-1, 2), np.arange(n_rows) % 2
    _assert_equal(*_alone_and_together(HistGradientBoostClassifier(), 8, X, y))
    assert asked[-1] == 8


def test_rows_of_one_feature_and_of_none_that_varies(asked, rng):
    X, y = rng.normal(size=(200, 1)), np.arange(200) % 2
    for each in (X, np.ones_like(X)):
        _assert_equal(*_alone_and_together(HistGradientBoostClassifier(), 2, each, y))
    assert 2 in asked


def test_at_the_nodes_of_a_tree_the_first_ones_are_trained_together(asked, rng):
    y = np.arange(900) % 5
    X = rng.normal(size=(900, 6)) + rng.normal(size=(5, 6))[y]
    found = [
        Uncalibrated(HistGradientBoostClassifier(15), n_jobs=n_jobs, random_state=0)
        .fit(X, y)
        .predict_log_proba(X)
        for n_jobs in (1, 4)
    ]
    assert {1, 4} == set(asked)
    assert_array_equal(*found)


@pytest.mark.parametrize("estimator", [HistAdaBoostClassifier(5), HistGradientBoostClassifier(5)])
def test_others_are_trained_by_one_thread(asked, rng, estimator):
    y = np.arange(300) % 3
    X = csr_array(rng.poisson(0.5, size=(300, 6)) * 1.0 + np.eye(6)[y])
    if isinstance(estimator, HistAdaBoostClassifier):
        X = X.toarray()
    Uncalibrated(estimator, n_jobs=2, random_state=0).fit(X, y)
    assert set(asked) == {1}


def test_where_a_team_lacks_processors_one_thread_trains_the_same_trees(asked, monkeypatch, table):
    monkeypatch.setattr(nodes, "_LOOK", 1e-4)
    monkeypatch.setattr(nodes, "_ENOUGH", np.inf)  # it always loses too much time
    dissolved, dissolve = [], Team.dissolve
    monkeypatch.setattr(Team, "dissolve", lambda team: dissolved.append(dissolve(team)))
    estimator = HistGradientBoostClassifier(60)
    _assert_equal(*_alone_and_together(estimator, 3, *table))
    assert dissolved
    assert asked == [1, 3, 1]


def test_where_a_thread_cannot_be_started_none_waits_for_it(asked, monkeypatch, table):
    class Full(ThreadPoolExecutor):
        def submit(self, *arguments):
            if len(self._threads) == 1:
                raise RuntimeError("can't start new thread")
            return super().submit(*arguments)

    monkeypatch.setattr(nodes, "ThreadPoolExecutor", Full)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        HistGradientBoostClassifier(5, n_jobs=3).fit(*table)
    assert asked == [3]
    assert all(not thread.name.startswith("ThreadPool") for thread in threading.enumerate())


def test_without_a_compiler_one_thread_trains(asked, monkeypatch, table):
    monkeypatch.setattr(nodes, "has_compiler", lambda: False)
    HistGradientBoostClassifier(3, n_jobs=2).fit(*table)
    assert asked == [1]


def test_no_more_threads_than_processors(asked, monkeypatch, table):
    monkeypatch.setattr(parallel, "cpu_count", lambda: 2)
    HistGradientBoostClassifier(3, n_jobs=50).fit(*table)
    assert asked[0] == 2


def test_an_interrupted_fit_leaves_no_threads(asked, monkeypatch, table):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(nodes, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        HistGradientBoostClassifier(2_000, n_jobs=2).fit(*table)
    assert asked == [2]
    assert all(not thread.name.startswith("ThreadPool") for thread in threading.enumerate())
