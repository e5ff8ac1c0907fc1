"""Files ten times as large as the memory that a process may use, fitted batch by batch.

Rows are stored: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from benchmarks.race import Store, arguments, report
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TEXT = """
# Files larger than memory

A file is fitted by `fit_batches` in a process whose memory is limited by `RLIMIT_DATA`. That counts all
private writable memory, but not mapped files; if the limit were not held, an allocation would fail, and the
fit with it. The limit is what the process has after a small fit, libraries and compiled kernels included, and
{room} MiB more. The file is {times} times those {room} MiB: rows of {features} numbers in single precision,
{classes} classes; with `--whole`, {times} times the whole limit. `max_memory` is {budget} MiB. *Peak* is the
largest `VmData`, looked at 20 times a second. Time is processor time, as a multiple of one pass over the file
that sums the rows of each class.

The NLL on test rows is compared with that of a fit in memory, in a process without limit, to the rows of the
smaller file, which are the first of the larger one. Trees of 2-means and vector scaling in all; in memory,
cross-fitted on three folds. The rows are generated: classes in groups of ten, features with noise.
"""

_FEATURES, _CLASSES, _BATCH, _TEST_ROWS = 64, 200, 16_384, 20_000
#: Memory beyond what libraries take, what of it is for rows, in MiB, and how much larger the file is.
_ROOM, _BUDGET, _TIMES = 48, 16, 10
LEARNERS: dict[str, Callable[[], Any]] = {
    "naive Bayes": GaussianNB,
    "logistic regression": LogisticRegression,
    "boosted trees": lambda: HistGradientBoostClassifier(10, max_leaf_nodes=16),
}


def _centres() -> Any:
    rng = np.random.default_rng(0)
    groups = rng.standard_normal((_CLASSES // 10, _FEATURES))
    return np.repeat(groups, 10, axis=0) + 0.6 * rng.standard_normal((_CLASSES, _FEATURES))


def _rows(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(_CLASSES, size=n)
    return _centres().astype(np.float32)[y] + rng.standard_normal((n, _FEATURES), dtype=np.float32), y


def _write(folder: Path, n: int) -> None:
    """Write rows to two files, batch by batch."""
    with (folder / "X.bin").open("wb") as features, (folder / "y.bin").open("wb") as labels:
        for i, begin in enumerate(range(0, n, _BATCH)):
            X, y = _rows(min(_BATCH, n - begin), i + 1)
            features.write(X.tobytes())
            labels.write(y.astype(np.int16).tobytes())


def _batches(folder: Path, n: int) -> Iterator[tuple[Any, Any]]:
    """Read the files, a batch at a time, without mapping them."""
    with (folder / "X.bin").open("rb") as features, (folder / "y.bin").open("rb") as labels:
        for begin in range(0, n, _BATCH):
            rows = min(_BATCH, n - begin)
            X = np.fromfile(features, np.float32, rows * _FEATURES).reshape(rows, _FEATURES)
            yield X, np.fromfile(labels, np.int16, rows).astype(np.intp)


def _one_pass(folder: Path, n: int) -> float:
    """Processor seconds of summing the rows of each class."""
    begun, sums = process_time(), np.zeros((_CLASSES, _FEATURES))
    for X, y in _batches(folder, n):
        order = np.argsort(y, kind="stable")
        sums += np.add.reduceat(X[order], np.searchsorted(y[order], np.arange(_CLASSES)), dtype=np.float64)
    return process_time() - begun


def _data() -> int:
    """Private writable memory of this process, in MiB."""
    return int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) // 1024


class _Peak:
    """Largest private writable memory of this process in MiB, looked at every 50 ms."""

    def __enter__(self) -> _Peak:
        self.most, self._done = 0, threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.05):
            self.most = max(self.most, _data())

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._watch.join()


def _fitted(learner: str, folder: Path, n: int, budget: int) -> dict[str, Any]:
    """Fit in this process; return the classifier's NLL on test rows, seconds and peak memory."""
    clf, begun = _classifier(learner).set_params(max_memory=budget), process_time()
    with _Peak() as peak:
        clf.fit_batches(lambda: _batches(folder, n), spill=folder / "spill")
    clf.set_params(max_memory=None)
    return {"nll": _nll(clf), "seconds": process_time() - begun, "peak": peak.most}


def _classifier(learner: str) -> Any:
    calibration: dict[str, Any] = {"internal_calibration": None, "external_calibration": "vector"}
    return NestedDichotomyClassifier(LEARNERS[learner](), "2-means", random_state=0, **calibration)


def _nll(clf: Any) -> float:
    X, y = _rows(_TEST_ROWS, 10**6)
    return float(-clf.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(clf.classes_, y)].mean())


def _in_memory(learner: str) -> float:
    """NLL of a fit in memory to the rows of the smaller file."""
    n = _TIMES * _ROOM * 2**20 // (4 * _FEATURES)
    X, y = np.empty((n, _FEATURES), dtype=np.float32), np.empty(n, dtype=np.intp)
    for i, begin in enumerate(range(0, n, _BATCH)):
        end = min(begin + _BATCH, n)
        X[begin:end], y[begin:end] = _rows(end - begin, i + 1)
    return _nll(_classifier(learner).fit(X, y))


def _in_process(*what: str) -> Any:
    """Answer of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.out_of_memory", "--child", *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _child(learner: str, kind: str) -> None:
    """Entry of the process: warm up, limit the memory, fit to a file that is too large for it."""
    if kind == "in memory":
        print(json.dumps(_in_memory(learner)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, 4 * _BATCH)
        _fitted(learner, folder, 4 * _BATCH, _BUDGET * 2**20)
        limit = _data() + _ROOM
        n = _TIMES * (limit if kind == "whole" else _ROOM) * 2**20 // (4 * _FEATURES)
        _write(folder, n)
        resource.setrlimit(resource.RLIMIT_DATA, (limit * 2**20, limit * 2**20))
        found = _fitted(learner, folder, n, _BUDGET * 2**20)
        one_pass = _one_pass(folder, n)
    kept = {name: found[name] for name in ("nll", "peak")}
    print(json.dumps(kept | {"limit": limit, "rows": n, "passes": found["seconds"] / one_pass}))


def _row(learner: str, kind: str) -> list[str]:
    if kind == "in memory":
        return [f"{_in_process(learner, kind):.3f}"]
    found = _in_process(learner, kind)
    size = 4 * _FEATURES * found["rows"] / 2**20
    row = [learner, f"{found['rows']:,}", f"{size:.0f} MiB", f"{found['limit']} MiB", f"{found['peak']} MiB"]
    return [*row, f"{found['passes']:.0f}", f"{found['nll']:.3f}"]


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:])
        return
    whole = "also make files ten times as large as the whole limit"
    options = arguments(__doc__, whole=whole, stored="measure nothing, show what is stored")
    store = Store("out_of_memory")
    for kind in ("room", "in memory", *(["whole"] if options.whole else [])):
        for learner in LEARNERS:
            title = f"{learner}, {kind}"
            if title not in store and not options.stored:
                store.keep(title, _row(learner, kind))
    titles = [f"{learner}, {kind}" for kind in ("room", "whole") for learner in LEARNERS]
    in_memory = {learner: store.get(f"{learner}, in memory", [""]) for learner in LEARNERS}
    rows = [[*store[title], *in_memory[store[title][0]]] for title in titles if title in store]
    numbers = {"room": _ROOM, "times": _TIMES, "features": _FEATURES, "classes": _CLASSES}
    header = ["learner", "rows", "file", "limit", "peak", "time, in passes", "NLL", "NLL in memory"]
    report("out_of_memory", TEXT.format(**numbers, budget=_BUDGET), header, rows, save=options.save)


if __name__ == "__main__":
    main()
