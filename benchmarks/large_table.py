"""A large ordinary table through ``dichotomies fit``: peak memory, and the progress bar against the clock."""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.race import report

TEXT = """
# A million rows from a file

`dichotomies fit` on a CSV file of {rows:,} rows and 30 columns (23 numbers, one of them with gaps, five
categories, a date, a truth; {size:.0f} MB, 20 classes, 82 features once they are encoded: {matrix:.2f} GB of
matrix), with the defaults and with base learners named. One progress bar covers reading, encoding, choosing,
growing, training and calibrating. "Bar" is the largest and the mean difference between the share of the time
that the bar showed and the share that had passed, in percentage points; "until the bar" is the share of the
time before its first line. Memory is the largest resident set of the process.
"""
HEADER = [
    "base learner",
    "time, of the first row's",
    "peak memory",
    "of the matrix",
    "bar: largest, mean",
    "until the bar",
]
_LINE = re.compile(r"\[dichotomies\] .*: +(\d+)%, ")
_FEATURES, _CLASSES, _BLOCK = 82, 20, 50_000


def write_table(path: Path, n_rows: int) -> None:
    """Write rows of twenty classes around random centres, in blocks."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(_CLASSES, 22))
    names = [*(f"x{i}" for i in range(22)), *(f"c{i}" for i in range(5)), "day", "flag", "gap", "label"]
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for first in range(0, n_rows, _BLOCK):
            n = min(_BLOCK, n_rows - first)
            y = rng.integers(_CLASSES, size=n)
            X = centres[y] + 1.5 * rng.normal(size=(n, 22))
            levels = rng.integers(8, size=(n, 5))
            levels[:, 0] = (levels[:, 0] + y) % 12
            days = np.datetime64("2020-01-01") + (3 * y + rng.integers(300, size=n)).astype("timedelta64[D]")
            columns = [np.char.mod("%.4f", X[:, i]) for i in range(22)]
            columns += [np.char.mod("level %d", levels[:, i]) for i in range(5)]
            columns += [days.astype(str), np.where(rng.random(n) < 0.3, "true", "false")]
            columns += [np.where(rng.random(n) < 0.1, "", columns[0]), np.char.mod("class %d", y)]
            file.writelines(",".join(row) + "\n" for row in zip(*columns, strict=True))


def _fit(table: Path, estimator: str) -> tuple[float, float, list[tuple[float, float]]]:
    """Seconds, gigabytes, and the fraction shown at fractions of the time."""
    command = [
        sys.executable,
        "-m",
        "dichotomies",
        "fit",
        str(table),
        "--label",
        "label",
        "-o",
        f"{table}.model",
    ]
    begun = time.monotonic()
    with subprocess.Popen([*command, "--estimator", estimator], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = ((time.monotonic() - begun, _LINE.match(line)) for line in process.stderr)
        shown = [(at, int(line[1]) / 100) for at, line in found if line]
    took = time.monotonic() - begun
    if process.returncode:
        raise SystemExit(f"dichotomies fit --estimator {estimator} ended with {process.returncode}.")
    return took, _peak(), [(at / took, fraction) for at, fraction in shown]


def _peak() -> float:
    """Gigabytes of the largest child so far; each measurement is therefore made in a process of its own."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9


def _measured(table: Path, estimator: str) -> list[float]:
    """Seconds, gigabytes, largest and mean difference, time until the bar; in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large_table", "--one", str(table), estimator]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(word) for word in output.splitlines()[-1].split()]


def _one(table: Path, estimator: str) -> None:
    took, peak, shown = _fit(table, estimator)
    differences = [abs(passed - fraction) for passed, fraction in shown]
    print(took, peak, max(differences), float(np.mean(differences)), shown[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--estimators", nargs="+", default=["auto", "logistic", "gaussian-nb"])
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        _one(Path(options.one[0]), options.one[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        write_table(table, options.rows)
        size, rows, first = table.stat().st_size / 1e6, [], 0.0
        matrix = options.rows * _FEATURES * 8 / 1e9
        for estimator in options.estimators:
            took, peak, most, mean, until = _measured(table, estimator)
            first = first or took
            row = [estimator, f"{took / first:.2f}", f"{peak:.1f} GB", f"{peak / matrix:.1f}x"]
            rows.append([*row, f"{100 * most:.0f}, {100 * mean:.0f}", f"{100 * until:.0f} %"])
            print(*rows[-1], sep=" | ", flush=True)
    text = TEXT.format(rows=options.rows, size=size, matrix=matrix)
    report("large_table", text, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
