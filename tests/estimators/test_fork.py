"""A process forked while other threads predict can predict, too: servers fork."""

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import os, sys, threading, time, warnings
from sklearn.datasets import load_digits
from dichotomies import NestedDichotomyClassifier

warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads, from Python 3.12 on
X, y = load_digits(return_X_y=True)
clf = NestedDichotomyClassifier(random_state=0, n_jobs=int(sys.argv[1])).fit(X, y)
expected, stop = clf.predict(X[:50]).tolist(), threading.Event()

def work():
    while not stop.is_set():
        clf.predict_proba(X)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
wrong = 0
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        os._exit(0 if clf.predict(X[:50]).tolist() == expected else 1)
    deadline = time.monotonic() + 20
    while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
        time.sleep(0.001)
    wrong += found[1] != 0
stop.set()
for thread in threads:
    thread.join()
sys.exit(wrong)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_children_forked_while_threads_predict_answer(n_jobs):
    done = subprocess.run([sys.executable, "-c", _SCRIPT, str(n_jobs), "40"], timeout=300)
    assert done.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_leaves_the_blas_limit_that_its_parent_entered():
    from dichotomies._common.parallel import ONE_BLAS_THREAD, _controller

    def threads():
        return [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]

    before = threads()
    with ONE_BLAS_THREAD:
        child = os.fork()
        if child == 0:
            with ONE_BLAS_THREAD:
                limited = all(number == 1 for number in threads())
            os._exit(0 if limited and threads() == before else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert threads() == before
