"""Boosted trees against LightGBM, XGBoost, CatBoost and scikit-learn, by the number of classes.

Needs ``pip install lightgbm xgboost catboost`` beside the project. Every model is fitted in a process of its
own with a limit of processor time. Results are stored as they come, and an interrupted race is continued.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.boosting_race_page import write_page
from benchmarks.race import RESULTS
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies._kernels.compile import compiling_always
from experiments.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import FloatArray, IntArray

STORE = RESULTS / "boosting_race.jsonl"


# ------------------------------------------------------------------ data


def optdigits() -> problems.Problem:
    """Digits, 64 features; every fourth row is for testing."""
    data = load("optdigits")
    return problems._divided("optdigits", data.X.astype(float), data.y, np.arange(len(data.y)) % 4 == 0)


def nhcd() -> problems.Problem:
    """Handwritten characters, 1,296 features; every fourth row is for testing."""
    data = load("nhcd")
    return problems._divided("nhcd", data.X.astype(float), data.y, np.arange(len(data.y)) % 4 == 0)


def table(n_classes: int = 60, n_rows: int = 12_000) -> problems.Problem:
    """A generated table: 20 numbers, a tenth of them missing, and 10 columns of 5 to 200 categories."""
    import pandas  # type: ignore[import-untyped]

    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    X = rng.normal(size=(n_rows, 20)) + rng.normal(size=(n_classes, 20))[y]
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 0] = np.where(rng.random(n_rows) < (y % 3) / 4, np.nan, X[:, 0])  # being missing tells something
    columns: dict[str, Any] = {f"number {i}": X[:, i] for i in range(20)}
    for i, n_values in enumerate(np.linspace(5, 200, 10).astype(int)):
        usual = rng.integers(n_values, size=n_classes)[y]
        value = np.where(rng.random(n_rows) < 0.5, rng.integers(n_values, size=n_rows), usual)
        columns[f"category {i}"] = pandas.Categorical([f"c{v}" for v in value])
    frame, test = pandas.DataFrame(columns), np.arange(n_rows) % 4 == 0
    return problems.Problem("table", frame[~test], y[~test], frame[test], y[test])


def forest_cover(n_rows: int = 40_000) -> problems.Problem:
    """Rows of the shape of covtype: 10 numbers, 44 indicators, 7 classes of very different sizes."""
    rng = np.random.default_rng(0)
    y = rng.choice(7, size=n_rows, p=[0.365, 0.488, 0.061, 0.005, 0.016, 0.03, 0.035])
    soil = (5 * y + rng.integers(0, 14, size=n_rows)) % 40
    numbers = rng.normal(size=(n_rows, 10)) + rng.normal(size=(7, 10))[y] * rng.random(10)
    numbers[:, 1] = numbers[:, 0] * numbers[:, 2] + 0.3 * y
    X = np.hstack([numbers, np.eye(40)[soil], np.eye(4)[(y + rng.integers(0, 3, size=n_rows)) % 4]])
    return problems._divided("covtype-like", X, y, np.arange(n_rows) % 4 == 0)


DATA: dict[str, Callable[[], problems.Problem]] = {
    "optdigits": optdigits,
    "letter": problems.letter,
    "omniglot-100": lambda: problems.omniglot(100),
    "omniglot-400": lambda: problems.omniglot(400),
    "table": table,
    "covtype-like": forest_cover,
    "kanji_fonts-26": lambda: problems.kanji_fonts(26),
    "kanji_fonts-100": lambda: problems.kanji_fonts(100),
    "kanji_fonts-200": lambda: problems.kanji_fonts(200),
    "kanji_fonts-400": lambda: problems.kanji_fonts(400),
    "nhcd": nhcd,
    "omniglot-1623": problems.omniglot,
    "kanji_fonts-1600": lambda: problems.kanji_fonts(1600),
    "kanji_fonts-6355": problems.kanji_fonts,
}

# ------------------------------------------------------------------ contenders


def ours(n_trees: int, *, calibrated: bool) -> Any:
    """The library's defaults; not calibrated, as the others are."""
    given: dict[str, Any] = {"random_state": 0}
    if not calibrated:
        given |= {"internal_calibration": None, "external_calibration": None}
    node = HistGradientBoostClassifier()
    if n_trees == 1:
        return NestedDichotomyClassifier(node, **given)
    return NestedDichotomyEnsemble(node, n_estimators=n_trees, **given)


def lightgbm(**parameters: Any) -> Any:
    """LightGBM, one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **parameters)


def xgboost(**parameters: Any) -> Any:
    """XGBoost, one thread."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, tree_method="hist", enable_categorical=True, random_state=0, **parameters)


def catboost() -> Any:
    """CatBoost, one thread."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(thread_count=1, verbose=0, random_seed=0, allow_writing_files=False)


def scikit_learn() -> Any:
    """scikit-learn's histogram boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


class Searched:
    """The better of some settings on a fifth of the training rows, fitted again on all of them."""

    def __init__(self, make: Callable[..., Any], settings: list[dict[str, Any]]) -> None:
        self.make, self.settings = make, settings

    def search(self, X: Any, y: IntArray) -> Any:
        """Return an unfitted model with the better setting."""
        held = np.random.default_rng(0).random(len(y)) < 0.2
        losses = []
        for setting in self.settings:
            proba = self.make(**setting).fit(X[~held], y[~held]).predict_proba(X[held])
            losses.append(-np.log(np.maximum(proba[np.arange(len(proba)), y[held]], 1e-300)).mean())
        return self.make(**self.settings[int(np.argmin(losses))])


def searched_lightgbm() -> Searched:
    """LightGBM by default, with three times the rounds, or with larger trees of drawn rows and features."""
    drawn = {"subsample": 0.7, "subsample_freq": 1, "colsample_bytree": 0.5, "min_child_samples": 5}
    return Searched(lightgbm, [{}, {"n_estimators": 300}, {"num_leaves": 63, **drawn}])


def searched_xgboost() -> Searched:
    """XGBoost likewise."""
    drawn = {"subsample": 0.7, "colsample_bytree": 0.5}
    return Searched(xgboost, [{}, {"n_estimators": 300, "learning_rate": 0.15}, {"max_depth": 8, **drawn}])


CONTENDERS: dict[str, Callable[[], Any]] = {
    "ours, one tree": lambda: ours(1, calibrated=False),
    "ours, four trees": lambda: ours(4, calibrated=False),
    "ours, one tree, calibrated": lambda: ours(1, calibrated=True),
    "ours, ten trees, calibrated": lambda: ours(10, calibrated=True),
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "scikit-learn": scikit_learn,
    "XGBoost, searched": searched_xgboost,
    "LightGBM, searched": searched_lightgbm,
    "CatBoost": catboost,
    "XGBoost, multi-output": lambda: xgboost(multi_strategy="multi_output_tree"),
}

# ------------------------------------------------------------------ one run


def measure(data: str, name: str) -> dict[str, Any]:
    """Fit and predict in this process."""
    problem, model = DATA[data](), CONTENDERS[name]()
    X, X_test = problem.X, problem.X_test
    if name == "CatBoost" and data == "table":
        X, X_test, model = _for_catboost(X, X_test, model)
    if name.startswith("ours"):  # compiled beforehand, as the others are
        few = np.flatnonzero(problem.y < 5)[:400]
        with compiling_always():
            model.fit(_rows(X, few), problem.y[few]).predict_proba(X_test)
    if isinstance(model, Searched):
        model = model.search(X, problem.y)
    before, begun = _peak(), time.process_time()
    model.fit(X, problem.y)
    fitted = time.process_time()
    proba, n_calls, seconds = np.asarray(model.predict_proba(X_test)), 1, time.process_time() - fitted
    while seconds < 0.05:  # the clock is coarse
        model.predict_proba(X_test)
        n_calls, seconds = n_calls + 1, time.process_time() - fitted
    log_proba = np.log(np.maximum(proba, 1e-300))
    return {
        "fit": fitted - begun,
        "predict": seconds / n_calls,
        "memory": _peak() - before,
        "size": _size(model),
        "nll": _nll(log_proba, problem.y_test),
        "scaled": _scaled_nll(log_proba, problem.y_test),
        "accuracy": float(np.mean(proba.argmax(axis=1) == problem.y_test)),
        "classes": int(problem.y.max()) + 1,
        "rows": len(problem.y),
        "features": int(X.shape[1]),
        "test rows": len(problem.y_test),
    }


def _rows(X: Any, rows: IntArray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _for_catboost(X: Any, X_test: Any, model: Any) -> tuple[Any, Any, Any]:
    """Categories as text, which is what CatBoost takes."""
    names = [column for column in X.columns if column.startswith("category")]
    as_text = [frame.assign(**{name: frame[name].astype(str) for name in names}) for frame in (X, X_test)]
    return *as_text, model.set_params(cat_features=names)


def _peak() -> float:
    """Peak memory of the process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _size(model: Any) -> float:
    """Size of the model in a file, in MiB."""
    if hasattr(model, "model_"):
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "x.model")
            return (Path(folder) / "x.model").stat().st_size / 2**20
    return len(pickle.dumps(model)) / 2**20


def _nll(log_proba: FloatArray, y: IntArray) -> float:
    return float(-log_proba[np.arange(len(y)), y].mean())


def _scaled_nll(log_proba: FloatArray, y: IntArray) -> float:
    """NLL after temperature scaling: each half of the test rows with the temperature of the other half."""
    half = np.arange(len(y)) % 2 == 0
    losses = np.empty(len(y))
    for fitted, scored in ((half, ~half), (~half, half)):
        best = minimize_scalar(
            lambda t, rows=fitted: _nll(log_softmax(log_proba[rows] * np.exp(t), axis=1), y[rows]),
            bounds=(-4, 4),
            method="bounded",
        )
        scaled = log_softmax(log_proba[scored] * np.exp(best.x), axis=1)
        losses[scored] = -scaled[np.arange(scored.sum()), y[scored]]
    return float(losses.mean())


# ------------------------------------------------------------------ the race


def run(data: str, name: str, limit: int) -> dict[str, Any]:
    """Measure in a process of its own; report the limit where it is hit."""
    work = subprocess.run(
        [sys.executable, "-m", "benchmarks.boosting_race", "--one", data, name],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
    )
    if work.returncode < 0:
        return {"limit": limit}
    if work.returncode:
        return {"error": work.stderr.strip().splitlines()[-1][:200]}
    found: dict[str, Any] = json.loads(work.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("DATA", "MODEL"), help="measure in this process")
    parser.add_argument("--limit", type=int, default=180, help="processor seconds for a fit and prediction")
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--models", nargs="*", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--save", action="store_true", help="write the page and the figure")
    options = parser.parse_args()
    if options.one:
        with threadpool_limits(1):
            print(json.dumps(measure(*options.one)))
        return
    done = [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []
    for data in options.data:
        for name in options.models:
            if any((each["data"], each["model"]) == (data, name) for each in done):
                continue
            done.append({"data": data, "model": name, **run(data, name, options.limit)})
            print(done[-1], flush=True)
            with STORE.open("a") as store:
                store.write(json.dumps(done[-1]) + "\n")
    if options.save:
        write_page(done)


if __name__ == "__main__":
    main()
