"""From a new process to the first answer, with nothing compiled, beside scikit-learn doing the same.

Rows are stored: an interrupted run goes on where it stopped, and ``--case TEXT`` measures those cases anew
whose titles contain the text.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import dichotomies
from benchmarks.race import Store, report
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TEXT = """
# Cold start

Seconds of processor time from the start of a new process to the first prediction, one run of each:
importing, fitting and predicting 100 rows, first with an empty cache of compiled kernels, then with the
kernels of the first run found there. Beside it the same with scikit-learn's estimator for the task, and how
many times its time the cold start takes. One thread on either side. "Kernels" are those that had to be
compiled; Python's own bytecode is there on either side, as pip leaves it. Training rows are all of iris,
digits, or letter's 16,000. Most of a warm start is the import of scikit-learn, numpy and scipy, which its own
estimator needs as well: the ratio tells more than the seconds. Starts above 1.5 s with a warm cache are fits
that take as long in a process that has run for hours: of letter, of ten trees, of a search for C at every
node, and of calibrators with many parameters or steps.
"""

HEADER = [
    "case", "import", "first fit", "first prediction", "total, cold", "kernels", "total, warm",
    "scikit-learn, total", "cold / scikit-learn", "warm / scikit-learn",
]  # fmt: skip

_DATA = {
    "iris": "from sklearn.datasets import load_iris; X, y = load_iris(return_X_y=True)",
    "digits": "from sklearn.datasets import load_digits; X, y = load_digits(return_X_y=True)",
    "sparse digits": (
        "from sklearn.datasets import load_digits; from scipy.sparse import csr_array; "
        "X, y = load_digits(return_X_y=True); X = csr_array(X)"
    ),
    "letter": (
        "from experiments.datasets import load; data = load('letter'); keep = data.extra['train_idx']; "
        "X, y = data.X[keep] / 15, data.y[keep]"
    ),
}


_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Case(NamedTuple):
    """What is timed, in lines of Python.

    Attributes
    ----------
    data : str
        Key of the data; loading is not timed.
    imports, model : str
        Our side.
    their_imports, theirs : str
        scikit-learn's.
    """

    title: str
    data: str
    imports: str
    model: str
    their_imports: str
    theirs: str


_CLASSIFIER = "from dichotomies import NestedDichotomyClassifier as Tree"
_FLAT = "from sklearn.linear_model import LogisticRegression", "LogisticRegression()"
_CALIBRATED = (
    f"{_FLAT[0]}; from sklearn.calibration import CalibratedClassifierCV",
    "CalibratedClassifierCV(LogisticRegression(), cv=3)",
)


def _cases() -> list[Case]:
    cases = [
        Case(f"default, {data}", data, _CLASSIFIER, "Tree()", *_FLAT) for data in ("iris", "digits", "letter")
    ]
    for data in ("digits", "sparse digits"):
        ours = f"{_CLASSIFIER}; {_FLAT[0]}", "Tree(LogisticRegression(), 'random')"
        cases.append(Case(f"logistic, {data}", data, *ours, *_FLAT))
        cases.append(_bayes("MultinomialNB", data))
    cases += [_bayes(name, "digits") for name in ("ComplementNB", "BernoulliNB", "GaussianNB")]
    for name in ("ScaledLogisticRegression", "TunedLogisticRegression"):
        ours = f"{_CLASSIFIER}; from dichotomies import {name}", f"Tree({name}())"
        cases.append(Case(f"{name}, digits", "digits", *ours, *_FLAT))
    boosting = "from sklearn.ensemble import HistGradientBoostingClassifier as Theirs", "Theirs()"
    for name in ("HistGradientBoostClassifier", "HistAdaBoostClassifier"):
        ours = f"{_CLASSIFIER}; from dichotomies.learners.boosting import {name}", f"Tree({name}())"
        cases += [Case(f"{name}, {data}", data, *ours, *boosting) for data in ("iris", "digits")]
    for kind, calibrators in (("internal", BINARY), ("external", MULTICLASS)):
        for name in calibrators.names():
            model = f"Tree({kind}_calibration={name!r})"
            cases.append(Case(f"{kind} {name}, digits", "digits", _CLASSIFIER, model, *_CALIBRATED))
    several = "from dichotomies import NestedDichotomyEnsemble as Trees", "Trees()"
    cases.append(Case("ensemble of ten trees, digits", "digits", *several, *_FLAT))
    return cases


def _bayes(name: str, data: str) -> Case:
    """Naive Bayes at the nodes, and alone."""
    theirs = f"from sklearn.naive_bayes import {name}", f"{name}()"
    return Case(f"{name}, {data}", data, f"{_CLASSIFIER}; {theirs[0]}", f"Tree({name}())", *theirs)


_SCRIPT = """
{data}
import json, sys, time, warnings
warnings.simplefilter("ignore")
begun = time.process_time()
{imports}
imported = time.process_time()
model = {model}
{fit}
fitted = time.process_time()
model.predict_proba(X[:100])
done = time.process_time()
kernels = 0
if "dichotomies._kernels.dispatch" in sys.modules:
    from dichotomies._kernels.dispatch import KEPT
    kernels = sum(len(each.signatures) for each in KEPT.values())
print(json.dumps([imported - begun, fitted - imported, done - fitted, kernels]))
"""


def _run(script: str, cache: str) -> tuple[list[float], float]:
    """What a new process reports, and its processor time."""
    output, took = _timed([sys.executable, "-c", script], cache)
    return json.loads(output), took


def _timed(command: list[str], cache: str) -> tuple[str, float]:
    """Output and processor time of a command."""
    environment = {**os.environ, **_ONE_THREAD, "NUMBA_CACHE_DIR": cache}
    before = os.times()
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return process.stdout, used


def _script(data: str, imports: str, model: str, fit: str = "model.fit(X, y)") -> str:
    return _SCRIPT.format(data=_DATA[data], imports=imports, model=model, fit=fit)


def _row(ours: str, theirs: str, repeats: int) -> list[str]:
    """A row of the table: the parts and the total of a cold start, that of a warm one, and scikit-learn's."""
    cold, warm, other = [], [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_run(ours, cache))
            warm.append(_run(ours, cache)[1])
        other.append(_run(theirs, "")[1])
    parts = [median(part) for part in zip(*(parts for parts, _ in cold), strict=True)]
    totals = _totals(median(took for _, took in cold), f"{parts[3]:.0f}", median(warm), median(other))
    return [*(f"{part:.2f}" for part in parts[:3]), *totals]


def _totals(cold: float, kernels: str, warm: float, flat: float) -> list[str]:
    """The cells from "total, cold" on."""
    seconds = f"{cold:.2f}", kernels, f"{warm:.2f}", f"{flat:.2f}"
    return [*seconds, f"{cold / flat:.1f}", f"{warm / flat:.1f}"]


_MODELS = {
    "linear": (_CLASSIFIER, "Tree()"),
    "naive Bayes": (f"{_CLASSIFIER}; from sklearn.naive_bayes import GaussianNB", "Tree(GaussianNB())"),
    "calibrated": (_CLASSIFIER, "Tree(internal_calibration='auto')"),
    "ensemble": ("from dichotomies import NestedDichotomyEnsemble as Trees", "Trees()"),
}


def _serving(name: str, folder: Path, repeats: int) -> list[str]:
    """Row for a saved model that predicts, beside scikit-learn's from a pickle."""
    flat = folder / "flat.pickle"
    imports = "import pickle; from sklearn.linear_model import LogisticRegression"
    keep = f"model.fit(X, y); pickle.dump(model, open({str(flat)!r}, 'wb'))"
    _run(_script("digits", imports, "LogisticRegression()", keep), "")
    theirs = _script("digits", "import pickle", f"pickle.load(open({str(flat)!r}, 'rb'))", "pass")
    file = str(folder / f"{name}.model")
    _run(_script("digits", *_MODELS[name], f"model.fit(X, y).save({file!r})"), "")
    ours = _script("digits", "import dichotomies", f"dichotomies.load({file!r})", "pass")
    return _row(ours, theirs, repeats)


def _command_line(name: str, folder: Path, repeats: int) -> list[str]:
    """Row for a command, beside scikit-learn in a script on the same file."""
    table, model = str(folder / "digits.csv"), str(folder / "digits.model")
    write = f"load_digits(as_frame=True).frame.to_csv({table!r}, index=False)"
    subprocess.run([sys.executable, "-c", f"from sklearn.datasets import load_digits; {write}"], check=True)
    read = f"import pandas; data = pandas.read_csv({table!r}); X, y = data.iloc[:, :-1], data.iloc[:, -1]"
    theirs = f"{read}; {_FLAT[0]}; model = {_FLAT[1]}.fit(X, y); print('[]')"
    commands = {
        "fit": ["dichotomies", "fit", table, "--label", "target", "--output", model, "--quiet"],
        "predict": ["dichotomies", "predict", model, table, "--output", str(folder / "out.csv")],
    }
    if name == "predict":
        _timed([sys.executable, "-m", *commands["fit"]], "")
    cold: list[float] = []
    warm: list[float] = []
    other = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for found in (cold, warm):
                found.append(_timed([sys.executable, "-m", *commands[name]], cache)[1])
        other.append(_run(theirs, "")[1])
    return [*["-"] * 3, *_totals(median(cold), "-", median(warm), median(other))]


def _measurements(folder: Path, repeats: int) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Title and measurement of every case."""
    for case in _cases():
        ours = _script(case.data, case.imports, case.model)
        theirs = _script(case.data, case.their_imports, case.theirs)
        yield case.title, partial(_row, ours, theirs, repeats)
    for name in _MODELS:
        yield f"saved model predicts: {name}", partial(_serving, name, folder, repeats)
    for name in ("fit", "predict"):
        yield f"dichotomies {name}, digits.csv", partial(_command_line, name, folder, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side; the median is reported")
    parser.add_argument("--case", help="measure only these cases, again if need be")
    parser.add_argument("--save", action="store_true", help="write what is stored to docs/benchmarks/")
    options = parser.parse_args()
    store = Store("cold_start")
    compileall.compile_dir(Path(dichotomies.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        measurements = dict(_measurements(Path(folder), options.repeats))
        for title, measure in measurements.items():
            if title not in store if options.case is None else options.case in title:
                store.keep(title, measure())
    rows = [[title, *store[title]] for title in measurements if title in store]
    report("cold_start", TEXT, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
