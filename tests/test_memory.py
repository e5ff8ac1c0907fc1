"""Peaks of memory stay within what the documentation states (docs/deployment.md)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc"
    ),
]

#: Prints the megabytes of the arrays that matter, and the peaks beyond what was held before each call.
_SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier
from dichotomies._common.chunks import n_bytes

def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1e3

def peak(work):
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = status("VmRSS:")
    kept = work()
    return status("VmHWM:") - before

def rows(n, n_features, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    X = rng.normal(size=(n_classes, n_features))[y]
    X += rng.normal(size=X.shape)
    return X, y

learners = {
    "default": None, "logistic": LogisticRegression(), "bayes": GaussianNB(),
    "boosting": HistGradientBoostClassifier(10),
}
if sys.argv[1] in learners:
    clf = NestedDichotomyClassifier(learners[sys.argv[1]], random_state=0)
    clf.fit(*rows(12_000, 100, 20))  # loads everything, boosting included
    X, y = rows(150_000, 100, 20)
    found = {"X": X.nbytes / 1e6, "fit": peak(lambda: clf.fit(X, y)), "answer": len(X) * 20 * 8 / 1e6}
    found["predict"] = peak(lambda: clf.predict_proba(X))
elif sys.argv[1] == "limited":
    learner, n, n_features, n_classes, n_jobs, calibration = json.loads(sys.argv[2])
    clf = NestedDichotomyClassifier(learners[learner], random_state=0, n_jobs=n_jobs, **calibration)
    clf.fit(*rows(min(n, 11_000), n_features, 10))
    X, y = rows(n, n_features, n_classes)
    try:
        clf.set_params(max_memory=1).fit(X, y)
    except ValueError as error:
        least = str(error).split("may take ")[1].split(" beyond")[0]
    found = {"limit": n_bytes(least) / 1e6 * 1.01}
    found["fit"] = peak(lambda: clf.set_params(max_memory=found["limit"] * 1e6).fit(X, y))
    clf.set_params(max_memory="30MB")
    found["top"] = peak(lambda: clf.predict_top_k(X, 3))
    found["node"] = peak(lambda: clf.predict_node(X, 0.8))
    found["predict"] = peak(lambda: clf.predict_proba(X)) - n * n_classes * 8 / 1e6
else:
    clf = NestedDichotomyClassifier(
        GaussianNB(), "class-balanced", internal_calibration=None, external_calibration="temperature",
        calibration_size=0.1, random_state=0,
    ).fit(*rows(10_000, 50, 5_000))
    X = np.random.default_rng(0).normal(size=(20_000, 50))
    clf.predict_top_k(X[:100], 5)
    found = {"top": peak(lambda: clf.predict_top_k(X, 5))}
print(json.dumps(found))
"""


def peaks(*what):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, *what], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("learner", ["default", "logistic", "bayes", "boosting"])
def test_fit_and_predict_stay_within_a_multiple_of_their_input(learner):
    found = peaks(learner)
    assert found["fit"] < 2.6 * found["X"] + 50
    assert found["predict"] < found["answer"] + 100


def test_the_most_probable_of_many_classes_need_no_array_of_all():
    assert peaks("top")["top"] < 200  # the probabilities of all classes would be 800 MB


_OUTSIDE = {"internal_calibration": None, "external_calibration": "vector"}


@pytest.mark.parametrize(
    "case",
    [
        ("logistic", 40_000, 100, 20, 2, {}),
        ("default", 30_000, 100, 20, None, {}),
        ("boosting", 40_000, 100, 20, 2, {}),
        ("bayes", 30_000, 10, 100, None, {"structure": "huffman"}),
        ("bayes", 20_000, 20, 1_000, 2, {"structure": "random", **_OUTSIDE}),
    ],
    ids=str,
)
def test_max_memory_is_kept(case):
    """The least limit that a fit accepts holds, and so does one of 30 MB for predictions of any kind."""
    found = peaks("limited", json.dumps(case))
    assert found["fit"] < found["limit"]
    assert max(found["top"], found["node"], found["predict"]) < 30
