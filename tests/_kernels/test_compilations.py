"""Which kernels, and how many signatures of each, fixed actions need: growth is to be seen."""

import json
import subprocess
import sys

import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

PREAMBLE = """
import gc, json, sys, warnings
import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
import dichotomies
from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies._kernels.compile import Kernel

warnings.simplefilter("ignore")
iris, digits = load_iris(return_X_y=True), load_digits(return_X_y=True)
rng = np.random.default_rng(0)
y = np.arange(6000) % 12
X = rng.normal(size=(6000, 16)) + rng.normal(size=(12, 16))[y]

def fit(rows, *arguments, **parameters):
    clf = NestedDichotomyClassifier(*arguments, **{"random_state": 0, **parameters}).fit(*rows)
    clf.predict_proba(rows[0][:100])
    return clf
"""

EPILOGUE = """
used = {}
for each in gc.get_objects():
    if isinstance(each, Kernel) and "compiled" in vars(each):
        module = each.__module__.removeprefix("dichotomies._kernels.")
        used[f"{module}.{each.__name__}"] = len(each.compiled.signatures)
print(json.dumps([used, "numba" in sys.modules]))
"""


def _used(action):
    """Kernels that a new process needs for an action, with the number of their signatures; and of numba."""
    process = subprocess.run(
        [sys.executable, "-c", PREAMBLE + action + EPILOGUE],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    return tuple(json.loads(process.stdout.splitlines()[-1]))


SMALL = {
    "the default": "fit(iris); fit(digits)",
    "calibrators": """
from dichotomies.calibrators.binary import BINARY
for name in BINARY.names():
    fit(iris, internal_calibration=name)
    fit(digits, GaussianNB(), internal_calibration=name)
for name in ("vector", "temperature", "isotonic"):
    fit(iris, external_calibration=name)
""",
    "learners": """
fit(digits, MultinomialNB(), internal_calibration="isotonic")
fit(digits, BernoulliNB())
fit(digits, GaussianNB(), internal_calibration="platt")
fit((csr_array(digits[0]), digits[1]))
fit((csr_array(digits[0]), digits[1]), LogisticRegression())
fit((csr_array(digits[0]), digits[1]), MultinomialNB())
""",
    "ensembles": "NestedDichotomyEnsemble(n_estimators=3, random_state=0).fit(*iris).predict(iris[0])",
}


@pytest.mark.parametrize("action", SMALL)
def test_small_problems_compile_nothing_and_do_not_import_numba(action):
    assert _used(SMALL[action]) == ({}, False)


def test_a_saved_model_answers_without_a_compiler(tmp_path):
    models = [
        NestedDichotomyClassifier(estimator, internal_calibration=internal, random_state=0)
        for estimator in (LogisticRegression(), GaussianNB(), MultinomialNB())
        for internal in (None, "auto", "isotonic", "venn-abers")
    ]
    models.append(NestedDichotomyEnsemble(n_estimators=3, random_state=0))
    X, y = load_digits(return_X_y=True)
    for i, model in enumerate(models):
        model.fit(X[::3], y[::3]).save(tmp_path / f"{i}.model")
    sparse = NestedDichotomyClassifier(MultinomialNB(), random_state=0).fit(csr_array(X), y)
    sparse.save(tmp_path / "sparse.model")
    action = f"""
from pathlib import Path
for file in sorted(Path({str(tmp_path)!r}).glob("*.model")):
    rows = csr_array(digits[0]) if file.stem == "sparse" else digits[0]
    dichotomies.load(file).predict_proba(rows[:50])
"""
    assert _used(action) == ({}, False)


LARGE = {
    "gradient boosting, however rows are stored": (
        """
from dichotomies.learners.boosting import HistGradientBoostClassifier
for rows in (digits[0], np.asfortranarray(digits[0])):
    fit((rows, digits[1]), HistGradientBoostClassifier(), internal_calibration="platt")
""",
        {
            "boosting.boosting.boost_gradient_nodes": 1,
            "boosting.encoding.encode": 1,
            "boosting.scoring.score_held_out": 1,
            "boosting.scoring.sum_trees": 1,
        },
    ),
    "dense logistic regression": (
        "fit((X, y), LogisticRegression(), structure='random')",
        {"newton.axes.train_along_axes": 1, "composition.path_sums": 1},
    ),
    "the same rows, however they are stored": (
        """
frozen = X.copy(); frozen.flags.writeable = False
for rows in (X, np.asfortranarray(X), frozen, X[::-1], X.astype(np.float32)):
    plain = dict(internal_calibration=None, external_calibration=None)
    fit((rows, y), LogisticRegression(), structure="random", **plain)
    fit((rows, y), LogisticRegression(), "random", internal_calibration="platt", external_calibration=None)
""",
        {"newton.axes.train_along_axes": 1, "platt.fit_affine": 1},
    ),
    "sparse logistic regression, indices of either size": (
        """
counts = csr_array(rng.poisson(0.02, size=(6000, 800)).astype(float))
wide = counts.copy()
wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
for rows in (counts, wide):
    fit((rows, y), LogisticRegression(), "random", internal_calibration=None, external_calibration=None)
""",
        {"newton.sparse.count_active": 1, "newton.sparse.train_by_sweeps": 1},
    ),
}


@pytest.mark.parametrize("action", LARGE)
def test_large_problems_compile_only_the_way_they_take_with_one_signature_each(action):
    code, expected = LARGE[action]
    assert _used(code)[0] == expected
