"""A large ordinary table through ``dichotomies fit``: time and peak memory."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.race import report

TEXT = """
# A million rows from a file

`dichotomies fit` on a CSV file of {rows:,} rows and 30 columns (23 numbers, one of them with gaps, five
categories, a date, a truth; {size:.0f} MB, 20 classes, 82 features once they are encoded: {matrix:.2f} GB of
matrix), with the defaults and with base learners named. Memory is the largest resident set of the process.
"""
HEADER = ["base learner", "time, of the first row's", "peak memory", "of the matrix"]
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


def _measured(table: Path, estimator: str) -> list[float]:
    """Seconds and gigabytes of a fit; the process between holds the peak of one child only."""
    fit = f"fit {table} --label label -o {table}.model --quiet --estimator {estimator}".split()
    code = (
        "import resource, subprocess, sys, time; begun = time.monotonic(); "
        f"subprocess.run([sys.executable, '-m', 'dichotomies', *{fit}], check=True, stdout=sys.stderr); "
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss; "
        "print(time.monotonic() - begun, peak * 1024 / 1e9)"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return [float(word) for word in output.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--estimators", nargs="+", default=["auto", "logistic", "gaussian-nb"])
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        write_table(table, options.rows)
        size, rows, first = table.stat().st_size / 1e6, [], 0.0
        matrix = options.rows * _FEATURES * 8 / 1e9
        for estimator in options.estimators:
            took, peak = _measured(table, estimator)
            first = first or took
            rows.append([estimator, f"{took / first:.2f}", f"{peak:.1f} GB", f"{peak / matrix:.1f}x"])
            print(*rows[-1], sep=" | ", flush=True)
    text = TEXT.format(rows=options.rows, size=size, matrix=matrix)
    report("large_table", text, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
