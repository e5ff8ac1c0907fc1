"""A process forked while another thread is inside our lock can predict, too: servers fork."""

import os
import threading

import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from dichotomies import NestedDichotomyClassifier
from dichotomies._common.parallel import ONE_BLAS_THREAD, _controller

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
