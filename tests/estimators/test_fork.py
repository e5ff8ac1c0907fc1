"""A process forked while other threads predict can predict, too: servers fork."""

import os
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from dichotomies import NestedDichotomyClassifier
from dichotomies._common.parallel import FORK_GATE, ONE_BLAS_THREAD, _controller

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


def _blas_threads():
    return [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]


def _answer_of_child(work):
    """Exit status of a forked child that is killed if it waits for ever."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    killer = threading.Timer(60, os.kill, (child, 9))
    killer.start()
    _, status = os.waitpid(child, 0)
    killer.cancel()
    return status


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork in a process with threads
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_child_predicts_though_a_thread_of_its_parent_held_the_lock(n_jobs):
    X, y = load_digits(return_X_y=True)
    clf = NestedDichotomyClassifier(
        LogisticRegression(),
        internal_calibration=None,
        external_calibration=None,
        random_state=0,
        n_jobs=n_jobs,
    ).fit(X, y)
    expected = clf.predict(X[:50]).tolist()
    inside, done = threading.Event(), threading.Event()

    def hold():
        with ONE_BLAS_THREAD, ONE_BLAS_THREAD._lock:
            inside.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    try:
        assert _answer_of_child(lambda: clf.predict(X[:50]).tolist() == expected) == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_leaves_the_blas_limit_that_its_parent_entered():
    before = _blas_threads()

    def limited_and_lifted():
        with ONE_BLAS_THREAD:
            limited = all(number == 1 for number in _blas_threads())
        return limited and _blas_threads() == before

    with ONE_BLAS_THREAD:
        assert _answer_of_child(limited_and_lifted) == 0
    assert _blas_threads() == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_tasks_of_other_threads_and_lets_none_begin():
    entered, left, begun = threading.Event(), [], []

    def work():
        with FORK_GATE, FORK_GATE:  # a thread may enter again
            entered.set()
            time.sleep(0.3)
            left.append(time.monotonic())

    def late():
        entered.wait()
        time.sleep(0.1)
        with FORK_GATE:
            begun.append(time.monotonic())

    threads = [threading.Thread(target=each) for each in (work, late)]
    for thread in threads:
        thread.start()
    entered.wait()
    with FORK_GATE:  # that the forking thread is inside does not stop it
        assert _answer_of_child(lambda: bool(left) and not begun and FORK_GATE._inside == 1) == 0
    for thread in threads:
        thread.join()
    assert begun
    assert FORK_GATE._inside == FORK_GATE._forks == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_two_hundred_forks_while_three_threads_predict(n_jobs):
    X, y = load_digits(return_X_y=True)
    clf = NestedDichotomyClassifier(LogisticRegression(), random_state=0, n_jobs=n_jobs).fit(X[:900], y[:900])
    expected, stop = clf.predict_proba(X[:50]), threading.Event()

    def work():
        while not stop.is_set():
            clf.predict_proba(X)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            assert _answer_of_child(lambda: np.allclose(clf.predict_proba(X[:50]), expected)) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
