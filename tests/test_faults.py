"""Memory that runs out, killed processes, a home that cannot be written: a sentence, and nothing torn."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris

from dichotomies import NestedDichotomyClassifier, load

X, Y = load_iris(return_X_y=True)


class Doomed(ClassifierMixin, BaseEstimator):
    """A base learner whose worker runs out of memory, or is killed as by the kernel's OOM killer."""

    def __init__(self, end="memory", parent=0):
        self.end, self.parent = end, parent

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if os.getpid() == self.parent:
            return self
        if self.end == "memory":
            np.empty(2**50)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


@pytest.mark.parametrize(
    ("end", "error", "sentence"),
    [
        ("memory", MemoryError, "Unable to allocate"),
        ("kill", TerminatedWorkerError, "worker process .* was unexpectedly terminated"),
    ],
)
def test_a_worker_without_memory_is_told_and_the_earlier_fit_stays(end, error, sentence):
    settings = {"internal_calibration": None, "external_calibration": None, "random_state": 0}
    clf = NestedDichotomyClassifier(Doomed(parent=os.getpid()), n_jobs=1, **settings).fit(X, Y)
    before = clf.tree_
    with pytest.raises(error, match=sentence):
        clf.set_params(estimator=Doomed(end, os.getpid()), n_jobs=2).fit(X, Y)
    assert clf.tree_ is before
    clf.set_params(estimator=Doomed(parent=os.getpid()), n_jobs=1).fit(X, Y)  # nothing is in the way


_SAVING = """
import sys
from sklearn.datasets import load_iris
from dichotomies import NestedDichotomyClassifier, load
X, y = load_iris(return_X_y=True)
clf = NestedDichotomyClassifier(random_state=0).fit(X, y)
clf.save(sys.argv[1])
print("begun", flush=True)
while True:
    clf.save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_process_killed_while_it_saves_leaves_a_whole_model(tmp_path):
    path = tmp_path / "a.model"
    for i in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", _SAVING, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.003 * (i + 1))
        process.kill()
        process.wait()
        process.stdout.close()
        assert load(path).predict(X[:1]) == [0]


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {
        "HOME": "/dev/null/home",
        "XDG_CACHE_HOME": "/dev/null/cache",
        "MPLCONFIGDIR": str(tmp_path),
    }
    data, model = tmp_path / "iris.csv", tmp_path / "iris.model"
    rows = [f"{','.join(map(str, row))},{label}" for row, label in zip(X.tolist(), Y.tolist(), strict=True)]
    data.write_text("\n".join(["a,b,c,d,y", *rows]))
    for words in (
        ["fit", data, "--label", "y", "-o", model, "--quiet"],
        ["evaluate", model, data, "--resamples", "1"],
        ["report", model, data, "-o", tmp_path / "r.html"],
    ):
        command = [sys.executable, "-m", "dichotomies", *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
