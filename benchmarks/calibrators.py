"""Our calibrators beside those of scikit-learn, netcal, probmetrics, betacal and venn-abers.

The other packages need PyTorch, so they go into an environment of their own::

    python -m venv arena && arena/bin/pip install -e . netcal probmetrics betacal venn-abers
    arena/bin/python -m benchmarks.calibrators --save

Results are kept in ``docs/benchmarks/calibrators.jsonl``: an interrupted run goes on from there.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from benchmarks import calibration_methods
from benchmarks.calibration_problems import PROBLEMS
from benchmarks.race import Store, arguments, markdown_table, report
from dichotomies.metrics import brier_score, expected_calibration_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.calibration_methods import Method
    from benchmarks.calibration_problems import Probabilities, Problem
    from dichotomies._common.typing import FloatArray, IntArray

LEAST = 1e-15
ROWS_PER_CLASS = (2, 5, 20, 100)
MANY_CLASSES = 50
QUICK = 2.0  # seconds below which the first method runs twice, so that kernels are compiled

TEXT = """
# Calibrators beside those of other packages

Class probabilities of flat models on rows that they were not trained on, in five folds: calibrated on 2, 5,
20 and 100 rows a class of four folds (in the mean: each class has its share, and one row at least), or as
many as there are, and evaluated on the fifth, in turn. All numbers are means over the folds. Every method
has its package's defaults. Probabilities below 1e-15 are read as 1e-15, in the input of all methods and in
their NLL; "-" where a method answers NaN, refuses so few rows, or takes minutes. *ECE* is the expected
calibration error of the most probable class in 20 bins of equal width; *classwise ECE* its mean over the
classes, each against the others. *Time* is processor time in one thread for fitting and predicting, relative
to `vector`.

`nested, three trees` is the geometric mean of nested calibration along its own tree, one of 2-means and one
of average linkage of the classes' mean log-probabilities. It is 1 % better than one tree at three
times the work, and no better than `vector-nested`, so the library does not have it.
"""

BINARY_TEXT = """
# Calibrators for two classes

The probabilities of [many classes](calibrators.md), summed over the first half of the classes: does the class
belong to it? NLL of the first fold, and the mean ECE.
"""


def scores(y: IntArray, proba: FloatArray) -> list[float]:
    """NLL, ECE, classwise ECE and Brier score."""
    proba = np.asarray(proba, dtype=np.float64)
    proba = proba / proba.sum(axis=1, keepdims=True)  # in single precision that is nearly 1
    labels = np.arange(proba.shape[1])
    nll = -np.log(np.maximum(proba[np.arange(len(y)), y], LEAST)).mean()
    ece = expected_calibration_error(y, proba, labels=labels)
    return [float(nll), ece, classwise_error(y, proba), brier_score(y, proba, labels=labels)]


def classwise_error(y: IntArray, proba: FloatArray, n_bins: int = 20) -> float:
    """Mean over the classes of the expected calibration error of each against the others."""
    n, k = proba.shape
    cell = np.minimum((proba * n_bins).astype(np.intp), n_bins - 1) + n_bins * np.arange(k)
    gap = np.bincount(cell.ravel(), proba.ravel(), n_bins * k)
    gap -= np.bincount(cell[np.arange(n), y], minlength=n_bins * k)
    return float(np.abs(gap).sum() / (n * k))


def measured(method: Method, data: Probabilities) -> list[float]:
    """Scores of a method, and seconds."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        begun = time.process_time()
        try:
            proba = method(data.proba, data.y, data.test_proba)
        except ValueError:  # too few rows of a class for the method
            proba = np.array(np.nan)
        seconds = time.process_time() - begun
    if not np.isfinite(proba).all():
        return [np.nan] * 5
    return [*scores(data.test_y, proba), seconds]


def run(problem: Problem, methods: dict[str, Method], store: Store) -> None:
    """Measure all methods on a problem and keep the means over the folds."""
    rows_before = 0
    for rows_per_class in ROWS_PER_CLASS:
        parts = [fold.few(rows_per_class, seed) for seed, fold in enumerate(problem.folds())]
        if len(parts[0].y) < 1.2 * rows_before:  # there are no more rows
            return
        rows_before = len(parts[0].y)
        n_classes = parts[0].proba.shape[1]
        for name, method in methods.items():
            title = f"{problem.name} | {problem.model} | {n_classes} | {rows_per_class} | {name}"
            if title in store or n_classes > calibration_methods.MOST_CLASSES.get(name, n_classes):
                continue
            found = np.mean([measured(method, part) for part in parts], axis=0)
            store.keep(title, [f"{value:.6g}" for value in found])


class Results:
    """Numbers by setting (dataset, model, classes, rows per class), method and measure."""

    def __init__(self, store: Store) -> None:
        found = {tuple(title.split(" | ")): list(map(float, row)) for title, row in store.items()}
        self.settings = list(dict.fromkeys(key[:4] for key in found))
        self.methods = list(dict.fromkeys(key[4] for key in found))
        self._found = found

    def table(self, measure: int, settings: Iterable[tuple[str, ...]]) -> FloatArray:
        """Numbers of a measure (n_settings, n_methods); NaN where a method was not run."""
        nothing = [np.nan] * 5
        return np.array(
            [[self._found.get((*each, name), nothing)[measure] for name in self.methods] for each in settings]
        )

    def many_classes(self) -> list[tuple[str, ...]]:
        """Settings of many classes."""
        return [each for each in self.settings if int(each[2]) >= MANY_CLASSES]

    def summary(self) -> list[list[str]]:
        """A row for each method: rank, NLL beside those of others, errors, time."""
        nll, many = self.table(0, self.settings), self.table(0, self.many_classes())
        ranks = np.array([rankdata(np.where(np.isnan(row), np.inf, row)) for row in nll])
        unit = self.methods.index("temperature")
        vector = self.table(4, self.settings)[:, [self.methods.index("vector")]]
        measures = [np.nanmean(self.table(m, self.settings), axis=0) for m in (1, 2, 3)]
        times = np.exp(np.nanmean(np.log(self.table(4, self.settings) / vector), axis=0))
        rows = []
        for j, name in enumerate(self.methods):
            if np.isnan(nll[:, j]).any():  # not comparable
                continue
            beside = _geometric(many[:, j] / self._best_of_others(many))
            cells = [ranks[:, j].mean(), beside, _geometric(nll[:, j] / nll[:, unit])]
            cells += [float((nll[:, j] / nll[:, unit]).max()), *(each[j] for each in measures), times[j]]
            rows.append([name, f"{cells[0]:.1f}", *(f"{cell:.3f}" for cell in cells[1:4])])
            rows[-1] += [f"{cells[4]:.4f}", f"{cells[5]:.5f}", f"{cells[6]:.4f}", f"{cells[7]:.2g}"]
        return sorted(rows, key=lambda row: float(row[1]))

    def _best_of_others(self, table: FloatArray) -> FloatArray:
        others = [j for j, name in enumerate(self.methods) if ":" in name]
        return np.asarray(np.nanmin(table[:, others], axis=1))

    def in_full(self) -> tuple[list[str], list[list[str]]]:
        """NLL of every method in every setting, the best in bold."""
        header = ["data, model (classes), rows a class", *self.methods]
        rows = []
        for setting, losses in zip(self.settings, self.table(0, self.settings), strict=True):
            name, model, n_classes, rows_per_class = setting
            best = np.nanmin(losses)
            cells = ["-" if np.isnan(x) else f"**{x:.3f}**" if x == best else f"{x:.3f}" for x in losses]
            rows.append([f"{name}, {model} ({n_classes}), {rows_per_class}", *cells])
        return header, rows


def _geometric(ratios: FloatArray) -> float:
    return float(np.exp(np.log(ratios).mean()))


def binary_rows() -> tuple[list[str], list[list[str]]]:
    """NLL of binary methods on the halves of the classes."""
    data = [next(problem.folds()).halves() for problem in PROBLEMS]
    names = [f"{problem.name}, {problem.model}" for problem in PROBLEMS]
    rows = []
    for name, method in calibration_methods.binary().items():
        found = [measured(method, part) for part in data]
        rows.append([name, *(f"{each[0]:.3f}" for each in found), f"{np.mean([e[1] for e in found]):.4f}"])
        print(*rows[-1], sep=" | ", flush=True)
    return ["method", *names, "ECE"], rows


def main() -> None:
    """Measure what is not measured yet, and make the page; or the page of two classes."""
    switches = {
        "page": "make the page from the results at hand",
        "binary": "make the page of calibrators for two classes",
    }
    options = arguments(__doc__, repeats=1, **switches)
    warnings.simplefilter("ignore")
    if options.binary:
        with threadpool_limits(1):
            header, rows = binary_rows()
        report("binary_calibrators", BINARY_TEXT, header, rows, save=options.save)
        return
    store = Store("calibrators")
    if not options.page:
        with threadpool_limits(1):
            methods = calibration_methods.multiclass()
            for problem in PROBLEMS:
                run(problem, methods, store)
    results = Results(store)
    packages = ("scikit-learn", "netcal", "probmetrics")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    summary = [
        "method",
        "mean rank",
        f"NLL / best of other packages, {MANY_CLASSES} classes and more",
        "NLL / temperature",
        "at worst",
        "ECE",
        "classwise ECE",
        "Brier",
        "time",
    ]
    text = f"{TEXT}\nThe others: {versions}. Set-up: the first lines of `benchmarks/calibrators.py`.\n\n"
    text += "## In short\n\nMethods that ran everywhere; ratios are geometric means.\n\n"
    text += f"{markdown_table(summary, results.summary())}\n\n## NLL\n"
    report("calibrators", text, *results.in_full(), save=options.save)


if __name__ == "__main__":
    main()
