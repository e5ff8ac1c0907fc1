"""Boosted trees against LightGBM, XGBoost, CatBoost and scikit-learn, by the number of classes.

Needs ``pip install lightgbm xgboost catboost`` beside the project. Every model is fitted in a process of its
own with a limit of processor time. Results are stored as they come, and an interrupted race is continued;
``--again`` replaces stored results.
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

import dichotomies
from benchmarks.boosting_race_data import DATA
from benchmarks.boosting_race_models import NAMES, OURS, SEARCHED, make
from benchmarks.boosting_race_page import write_page
from benchmarks.race import RESULTS
from dichotomies._kernels.compile import compiling_always

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

STORE = RESULTS / "boosting_race.jsonl"

#: Prediction is timed on so many rows, the test rows again and again: neither side answers row by row.
TIMED_ROWS = 4_000


def measure(data: str, name: str) -> dict[str, Any]:
    """Fit and predict in this process."""
    problem = DATA[data]()
    X, X_test, fixed = problem.X, problem.X_test, dict[str, Any]()
    if name.startswith("CatBoost") and data == "table":
        X, X_test, fixed = _for_catboost(X, X_test)
    model = make(name, X, problem.y, **fixed)
    n_repeats = -(-TIMED_ROWS // len(problem.y_test))
    many = _rows(X_test, np.tile(np.arange(len(problem.y_test)), n_repeats))
    if name in OURS:  # compiled beforehand, as the others are
        few = np.flatnonzero(problem.y < 5)[:400]
        with compiling_always():
            model.fit(_rows(X, few), problem.y[few]).predict_proba(X_test)
    before, begun = _peak(), time.process_time()
    model.fit(X, problem.y)
    fitted = time.process_time() - begun
    proba = np.asarray(model.predict_proba(X_test))
    memory, log_proba = _peak() - before, np.log(np.maximum(proba, 1e-300))
    return {
        "fit": fitted,
        "predict": _seconds_to_predict(model, many) / n_repeats,
        "memory": memory,
        "size": _size(model),
        "nll": _nll(log_proba, problem.y_test),
        "scaled": _scaled_nll(log_proba, problem.y_test),
        "accuracy": float(np.mean(proba.argmax(axis=1) == problem.y_test)),
        "classes": int(problem.y.max()) + 1,
        "rows": len(problem.y),
        "features": int(X.shape[1]),
        "test rows": len(problem.y_test),
        "version": dichotomies.__version__,
        "day": time.strftime("%Y-%m-%d"),
    }


def _seconds_to_predict(model: Any, X: Any) -> float:
    """The lowest of three means, each of calls for at least a fifth of a second.

    Single calls are not timed: the clock of a process with a limit of processor time advances in steps of
    milliseconds, and the fastest of several short calls would come out too short.
    """
    means = []
    for _ in range(3):
        n_calls, begun = 0, time.process_time()
        while time.process_time() < begun + 0.2:
            model.predict_proba(X)
            n_calls += 1
        means.append((time.process_time() - begun) / n_calls)
    return min(means)


def _rows(X: Any, rows: IntArray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _for_catboost(X: Any, X_test: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Categories as text, which is what CatBoost takes."""
    names = [column for column in X.columns if column.startswith("category")]
    as_text = [frame.assign(**{name: frame[name].astype(str) for name in names}) for frame in (X, X_test)]
    return *as_text, {"cat_features": names}


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
        lines = work.stderr.strip().splitlines()
        return {"error": next((line for line in lines if "Error:" in line), lines[-1])[-200:]}
    found: dict[str, Any] = json.loads(work.stdout.splitlines()[-1])
    return found


def hit_before(data: str, name: str, done: list[dict[str, Any]]) -> str | None:
    """Find where the model hit the limit with fewer of these classes, or with all of them and no search."""
    family, classes = _family(data)
    for each in done:
        of, fewer = _family(each["data"])
        is_less = fewer < classes or (fewer == classes and each["model"] != name)
        same_model = each["model"] in (name, name.removesuffix(SEARCHED))
        if "limit" in each and same_model and of == family and is_less:
            return str(each["data"])
    return None


def least_to_search(data: str, name: str, done: list[dict[str, Any]]) -> float:
    """Estimate the least time of a search from the fit of the default: four times that; 0 for other models.

    Two of three settings are fitted to four fifths of the rows, one with three times the rounds, and the best
    setting to all rows.
    """
    default = name.removesuffix(SEARCHED)
    fits = [
        each["fit"] for each in done if each["data"] == data and each["model"] == default and "fit" in each
    ]
    return 4 * fits[0] if name != default and fits else 0.0


def _family(data: str) -> tuple[str, int]:
    name, _, classes = data.partition("-")
    return name, int(classes) if classes.isdigit() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("DATA", "MODEL"), help="measure in this process")
    parser.add_argument(
        "--limit", type=int, default=120, help="processor seconds; three times that to search"
    )
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--models", nargs="*", default=NAMES, choices=NAMES)
    parser.add_argument("--again", action="store_true", help="measure also what is stored")
    parser.add_argument("--save", action="store_true", help="write the page and the figure")
    options = parser.parse_args()
    if options.one:
        with threadpool_limits(1):
            print(json.dumps(measure(*options.one)))
        return
    for data in options.data:
        for name in options.models:
            _run_and_store(data, name, options.limit, again=options.again)
    if options.save:
        write_page(stored())


def stored() -> list[dict[str, Any]]:
    """The results so far."""
    return [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []


def _run_and_store(data: str, name: str, limit: int, *, again: bool) -> None:
    if not again and any((each["data"], each["model"]) == (data, name) for each in stored()):
        return
    before = hit_before(data, name, stored())
    limit *= 3 if name.endswith(SEARCHED) else 1
    least = least_to_search(data, name, stored())
    if before:
        found: dict[str, Any] = {"hit before": before}
    elif least > limit:
        found = {"expected": round(least), "beyond": limit}
    else:
        found = run(data, name, limit)
    print(data, name, found, flush=True)
    others = [each for each in stored() if (each["data"], each["model"]) != (data, name)]
    lines = [json.dumps(each) for each in (*others, {"data": data, "model": name, **found})]
    STORE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
