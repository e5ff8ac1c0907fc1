"""Processes that serve one model: load time and memory beside a joblib pickle, and growth over minutes.

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
from typing import Any

import joblib
from sklearn.naive_bayes import MultinomialNB

from benchmarks import problems
from benchmarks.race import report
from dichotomies import NestedDichotomyClassifier

HEADER = ["loaded by", "file", "load, of joblib's", "memory per process, of joblib's", "in MB"]
TEXT = """
# Serving one model from many processes

{n} processes load the same model ({size}, multinomial naive Bayes, vector scaling), predict a few rows, and
stay. Time to load (wall clock, median over processes, one after another, all imported before; our files
are verified by a checksum meanwhile, pickles are not), and the memory that each takes beyond what it had
before (proportional set size while all of them live).

Soak: {threads} threads of one process asked the mapped model for {minutes:g} minutes, {calls:,} calls in all
(`predict_proba`, `predict_top_k` and `predict` of 1 to 200 rows), each answer compared with the first of its
kind: {wrong} differed. Resident memory in MB after each quarter of the time: {memory}.
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
from scipy.sparse import csr_array
from dichotomies import NestedDichotomyClassifier, calibrators, learners, load, structures
dir(learners), dir(structures), dir(calibrators)  # everything is imported before anything is measured
before, begun = memory(), time.perf_counter()
if way == "joblib":
    model = joblib.load(path)
elif way == "joblib, mapped":
    model = joblib.load(path, mmap_mode="r")
else:
    model = load(path, mmap_mode="r" if way.endswith("mapped") else None)
seconds = time.perf_counter() - begun
model.predict_proba(csr_array(np.eye(3, n_features)))
print(seconds, flush=True)
sys.stdin.readline()
print(memory() - before, flush=True)
sys.stdin.readline()
"""


#: Threads predict until the time is over; prints calls, wrong answers, and MB after each quarter.
_SOAK = """
import sys, threading, time
import numpy as np, dichotomies
from pathlib import Path
from scipy.sparse import random_array

path, n_features, n_threads, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
model = dichotomies.load(path, mmap_mode="r")
rng = np.random.default_rng(0)
sizes = [1, 3, 50, 200]
rows = {n: random_array((n, n_features), density=5e-4, format="csr", random_state=0) for n in sizes}
asks = {
    "proba": lambda X: model.predict_proba(X),
    "top": lambda X: model.predict_top_k(X, 5)[1],
    "label": lambda X: model.predict(X),
}
expected = {(ask, n): asks[ask](rows[n]) for ask in asks for n in sizes}
counts, end = np.zeros((n_threads, 2), dtype=int), time.monotonic() + seconds

def memory():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1e3

def work(thread):
    turn = np.random.default_rng(thread)
    keys = list(expected)
    while time.monotonic() < end:
        ask, n = keys[turn.integers(len(keys))]
        answer = asks[ask](rows[n])
        same = (answer == expected[ask, n]).all() if ask == "label" else np.allclose(answer, expected[ask, n])
        counts[thread] += 1, not same

threads = [threading.Thread(target=work, args=(i,)) for i in range(n_threads)]
[thread.start() for thread in threads]
found = []
for _ in range(4):
    time.sleep(seconds / 4)
    found.append(memory())
[thread.join() for thread in threads]
print(*counts.sum(axis=0), *found)
"""


def soaked(path: Path, n_features: int, n_threads: int, minutes: float) -> dict[str, Any]:
    """Calls, wrong answers, and memory after each quarter of the time."""
    arguments = [str(path), str(n_features), str(n_threads), str(60 * minutes)]
    output = subprocess.run(
        [sys.executable, "-c", _SOAK, *arguments], check=True, capture_output=True, text=True
    )
    calls, wrong, *memory = map(float, output.stdout.split())
    found = {"calls": int(calls), "wrong": int(wrong), "memory": ", ".join(f"{each:.0f}" for each in memory)}
    return {**found, "threads": n_threads, "minutes": minutes}


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
    parser.add_argument("--threads", type=int, default=4, help="threads that predict at once")
    parser.add_argument("--minutes", type=float, default=5, help="how long they do")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    problem = problems.text("wordnet", weighted=False)
    model = NestedDichotomyClassifier(
        MultinomialNB(),
        internal_calibration=None,
        external_calibration="vector",
        calibration_size=0.1,
        random_state=0,
    )
    model.fit(problem.X, problem.y)
    with tempfile.TemporaryDirectory() as folder:
        saved, pickled = Path(folder) / "wordnet.model", Path(folder) / "wordnet.joblib"
        model.save(saved)
        joblib.dump(model, pickled)
        ways = {"joblib": pickled, "joblib, mapped": pickled, "load": saved, "load, mapped": saved}
        found = {
            way: measured(way, path, problem.X.shape[1], options.processes) for way, path in ways.items()
        }
        soak = soaked(saved, problem.X.shape[1], options.threads, options.minutes)
        sizes = {way: f"{path.stat().st_size / 1e6:.0f} MB" for way, path in ways.items()}
    seconds, kilobytes = found["joblib"]
    rows = [
        [way, sizes[way], f"{mine / seconds:.2f}x", f"{size / kilobytes:.2f}x", f"{size / 1e3:.1f}"]
        for way, (mine, size) in found.items()
    ]
    text = TEXT.format(n=options.processes, size=problem.size, **soak)
    print(text)
    report("serving", text, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
