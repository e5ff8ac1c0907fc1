"""Small problems need no compiler: numba is not even imported."""

import subprocess
import sys

import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

PREAMBLE = """
import sys, warnings
import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
import dichotomies
from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

warnings.simplefilter("ignore")
iris, digits = load_iris(return_X_y=True), load_digits(return_X_y=True)

def fit(rows, *arguments, **parameters):
    clf = NestedDichotomyClassifier(*arguments, **{"random_state": 0, **parameters}).fit(*rows)
    clf.predict_proba(rows[0][:100])
    return clf
"""

EPILOGUE = """
print("numba" in sys.modules)
"""


def _imports_numba(action):
    """Test whether a new process imports numba for an action."""
    process = subprocess.run(
        [sys.executable, "-c", PREAMBLE + action + EPILOGUE],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    return process.stdout.splitlines()[-1] == "True"


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
    assert not _imports_numba(SMALL[action])


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
    assert not _imports_numba(action)
