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

A file of {large:.1f} GiB, {rows:,} rows of {features} numbers in single precision and {classes} classes, is
fitted by `fit_batches` in a process that may use a tenth of that: `RLIMIT_DATA` is {limit} MiB. It counts all
private writable memory (the libraries' included, some {libraries} MiB), but not mapped files. If the limit
were not held, an allocation would fail, and the fit with it. *Peak* is the largest `VmData`, looked at
20 times a second. `max_memory` leaves {budget} MiB to rows and copies of them. Processor time is a multiple
of one pass over the file that sums the rows of each class.

The NLL on test rows is compared with a fit in memory on one row in {part}, with as much less
`max_memory`, so that as many nodes are trained on samples, and with the same tree. Vector scaling in all, in
memory cross-fitted on three folds. The rows are generated: classes in groups of ten, features with noise.
"""

_FEATURES, _CLASSES, _BATCH, _TEST_ROWS, _PART = 64, 200, 32_768, 20_000, 40
#: Memory that a process may have, what of it is for rows, and what libraries take, in MiB.
_LIMIT, _BUDGET, _LIBRARIES = 420, 64, 300
LEARNERS: dict[str, Callable[[], Any]] = {
    "naive Bayes": GaussianNB,
    "logistic regression": LogisticRegression,
    "boosted trees": lambda: HistGradientBoostClassifier(4, max_leaf_nodes=16),
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


class _Peak:
    """Largest private writable memory of this process (VmData) in MiB, looked at every 50 ms."""

    def __enter__(self) -> _Peak:
        self.most, self._done = 0, threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.05):
            status = Path("/proc/self/status").read_text()
            self.most = max(self.most, int(status.split("VmData:")[1].split()[0]) // 1024)

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._watch.join()


def _fitted(learner: str, folder: Path, n: int, budget: int) -> dict[str, Any]:
    """Fit in this process; return the classifier's NLL on test rows, seconds, peak memory and tree."""
    clf, begun = _classifier(learner), process_time()
    with _Peak() as peak:
        clf.fit_batches(lambda: _batches(folder, n), max_memory=budget, spill=folder / "spill")
    return {"nll": _nll(clf), "seconds": process_time() - begun, "peak": peak.most, "tree": clf.tree_}


def _classifier(learner: str, structure: Any = "2-means") -> Any:
    calibration: dict[str, Any] = {"internal_calibration": None, "external_calibration": "vector"}
    return NestedDichotomyClassifier(LEARNERS[learner](), structure, random_state=0, **calibration)


def _nll(clf: Any) -> float:
    X, y = _rows(_TEST_ROWS, 10**6)
    return float(-clf.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(clf.classes_, y)].mean())


def _in_memory(learner: str, folder: Path, n: int, tree: Any) -> float:
    X, y = (np.concatenate(each) for each in zip(*_batches(folder, n), strict=True))
    return _nll(_classifier(learner, tree).fit(X, y))


def _limited(learner: str, folder: Path, n: int, limit: int) -> dict[str, Any]:
    """Fit in a process of its own that may use `limit` MiB."""
    command = [sys.executable, "-m", "benchmarks.out_of_memory"]
    command += ["--child", learner, str(folder), str(n), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{learner} under {limit} MiB: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _child(learner: str, folder: str, n: str, limit: str) -> None:
    """Entry of the limited process; kernels are compiled beforehand."""
    most = int(limit) * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    found = _fitted(learner, Path(folder), int(n), _BUDGET * 2**20)
    print(json.dumps({name: found[name] for name in ("nll", "seconds", "peak")}))


def _row(learner: str, n: int) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, n)
        _fitted(learner, folder, n // 1_000, 2**22)  # compiles
        large, one_pass = _limited(learner, folder, n, _LIMIT), _one_pass(folder, n)
        small = _fitted(learner, folder, n // _PART, _BUDGET * 2**20 // _PART)
        in_memory = _in_memory(learner, folder, n // _PART, small["tree"])
    row = [learner, f"{large['nll']:.3f}", f"{large['peak']} MiB", f"{large['seconds'] / one_pass:.1f}"]
    row += [f"{small['nll']:.3f}", f"{in_memory:.3f}"]
    return row


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:])
        return
    options, store = arguments(__doc__), Store("out_of_memory")
    n = 10 * _LIMIT * 2**20 // (4 * _FEATURES)
    for learner in LEARNERS:
        if learner not in store:
            store.keep(learner, _row(learner, n))
    rows = [store[learner] for learner in LEARNERS]
    text = TEXT.format(
        large=4 * _FEATURES * n / 2**30,
        rows=n,
        features=_FEATURES,
        classes=_CLASSES,
        libraries=_LIBRARIES,
        limit=_LIMIT,
        budget=_BUDGET,
        part=_PART,
    )
    header = ["learner", "NLL", "Peak", "time, in passes", "NLL of a part", "NLL of it in memory"]
    report("out_of_memory", text, header, rows, save=options.save)


if __name__ == "__main__":
    main()
