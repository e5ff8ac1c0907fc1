"""Processes that serve one model: time to load it and memory they take, beside a joblib pickle.

Linux only: the memory of a process is its proportional set size, which divides shared pages among those who
share them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import joblib
from sklearn.naive_bayes import GaussianNB

from benchmarks import problems
from benchmarks.race import report
from dichotomies import NestedDichotomyClassifier

HEADER = ["loaded by", "file", "load, of joblib's", "memory per process, of joblib's", "in MB"]
TEXT = """
# Serving one model from many processes

{n} processes load the same model ({size}, Gaussian naive Bayes, vector scaling), predict a few rows, and
stay. Time to load (wall clock, median over processes, one after another), and the memory that each takes
beyond what it had before (proportional set size while all of them live).
"""

#: Loads, predicts, prints its measurements, and waits for the end of its input.
_WORKER = """
import sys, time
from pathlib import Path

import joblib, numpy as np, dichotomies

def memory():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))

way, path, n_features = sys.argv[1], sys.argv[2], int(sys.argv[3])
from dichotomies import NestedDichotomyClassifier  # imported before anything is measured
before, begun = memory(), time.perf_counter()
if way == "joblib":
    model = joblib.load(path)
elif way == "joblib, mapped":
    model = joblib.load(path, mmap_mode="r")
else:
    model = dichotomies.load(path, mmap_mode="r" if way.endswith("mapped") else None)
seconds = time.perf_counter() - begun
model.predict_proba(np.full((3, n_features), 0.5))
print(seconds, flush=True)
sys.stdin.readline()
print(memory() - before, flush=True)
sys.stdin.readline()
"""


def measured(way: str, path: Path, n_features: int, n_processes: int) -> tuple[float, float]:
    """Median seconds to load, and median kilobytes of a process while all of them live."""
    command = [sys.executable, "-c", _WORKER, way, str(path), str(n_features)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    workers, seconds = [], []
    for _ in range(n_processes):
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        workers.append(worker)
        seconds.append(float(_said(worker)))
    kilobytes = [float(_said(worker, "\n")) for worker in workers]
    for worker in workers:
        worker.communicate("\n")
    return median(seconds), median(kilobytes)


def _said(worker: subprocess.Popen[str], line: str = "") -> str:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(line)
    worker.stdin.flush()
    return worker.stdout.readline()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8, help="processes that serve the model")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    problem = problems.kanji_fonts()
    model = NestedDichotomyClassifier(
        GaussianNB(),
        internal_calibration=None,
        external_calibration="vector",
        calibration_size=0.1,
        random_state=0,
    )
    model.fit(problem.X, problem.y)
    with tempfile.TemporaryDirectory() as folder:
        saved, pickled = Path(folder) / "kanji.model", Path(folder) / "kanji.joblib"
        model.save(saved)
        joblib.dump(model, pickled)
        ways = {"joblib": pickled, "joblib, mapped": pickled, "load": saved, "load, mapped": saved}
        found = {
            way: measured(way, path, problem.X.shape[1], options.processes) for way, path in ways.items()
        }
        sizes = {way: f"{path.stat().st_size / 1e6:.0f} MB" for way, path in ways.items()}
    seconds, kilobytes = found["joblib"]
    rows = [
        [way, sizes[way], f"{mine / seconds:.2f}x", f"{size / kilobytes:.2f}x", f"{size / 1e3:.1f}"]
        for way, (mine, size) in found.items()
    ]
    text = TEXT.format(n=options.processes, size=problem.size)
    report("serving", text, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
