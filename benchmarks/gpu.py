"""A GPU beside two cores: training of logistic nodes, class probabilities, vector scaling and metrics.

Wall-clock times, the copies between host and device included where the data start on the host. Needs torch
and a CUDA device.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.race import report

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = ["work", "size", "two cores, s", "GPU, s", "times as fast", "difference"]
TEXT = """
# A GPU beside two cores

Wall-clock seconds on {cores} and on an {gpu}, on the same machine. *Training*: all nodes of a class-balanced
tree, `LogisticRegression()` without calibration, by `learner="logistic"` with `n_jobs=2` and by
`learner="gpu"`; the rows start in main memory, so that the copy to the GPU is part of its time. Where the
two cores needed more than the limit of {limit} s, they were stopped. *Class probabilities*, *vector scaling*
and *metrics* take and keep arrays on the GPU (scikit-learn's `array_api_dispatch`). The difference is the
largest between probabilities, fitted scales, or log-probabilities of the true classes of both; both sides of
training stop at scikit-learn's default `tol`. Classes are Gaussian, with as many dimensions as there are
features.
"""


def rows(n_rows: int, n_features: int, n_classes: int) -> tuple[Any, Any]:
    """Overlapping Gaussian classes, in single precision."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    y[:n_classes] = np.arange(n_classes)
    centres = rng.normal(size=(n_classes, n_features)).astype(np.float32)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    X *= 6.0
    for start in range(0, n_rows, 10_000):
        X[start : start + 10_000] += centres[y[start : start + 10_000]]
    return X, y


def train(learner: str, folder: Path) -> tuple[float, Any]:
    """Fit by one learner; return the seconds and probabilities of some rows."""
    from sklearn.linear_model import LogisticRegression

    from dichotomies import NestedDichotomyClassifier

    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    classifier = NestedDichotomyClassifier(
        LogisticRegression(),
        structure="class-balanced",
        internal_calibration=None,
        external_calibration=None,
        learner=learner,
        n_jobs=2,
        random_state=0,
    )
    few = np.flatnonzero(y < 10)[:500]
    classifier.fit(X[few], y[few])  # compiles, and starts the device
    begun = time.perf_counter()
    classifier.fit(X, y)
    return time.perf_counter() - begun, classifier.predict_proba(X[:1000])


def two_sides(size: tuple[int, int, int], limit: float) -> list[object]:
    """Train by both learners, each in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for key, value in zip("Xy", rows(*size), strict=True):
            np.save(folder / f"{key}.npy", value)
        seconds = {}
        for learner in ("gpu", "logistic"):
            command = [sys.executable, "-m", "benchmarks.gpu", "--one", learner, "--folder", name]
            cores = None if learner == "gpu" else lambda: os.sched_setaffinity(0, {0, 1})
            try:
                subprocess.run(command, check=True, timeout=limit + 60, preexec_fn=cores)
                seconds[learner] = float((folder / f"{learner}.txt").read_text())
            except subprocess.TimeoutExpired:
                seconds[learner] = np.inf
        answers = [np.load(path) for path in sorted(folder.glob("*_answer.npy"))]
    difference = f"{np.abs(answers[0] - answers[1]).max():.1g}" if len(answers) == 2 else ""
    return _row("training", size, seconds["logistic"], seconds["gpu"], difference, limit)


def _row(
    work: str, size: tuple[int, ...], host: float, device: float, difference: str, limit: float = np.inf
) -> list[object]:
    shape = " x ".join(f"{n:,}" for n in size)
    if np.isinf(host):
        return [work, shape, f"over {limit:g}", f"{device:.2f}", f"over {limit / device:.0f}", difference]
    return [work, shape, f"{host:.2f}", f"{device:.3g}", f"{host / device:.0f}", difference]


def answers(n_rows: int, n_features: int, n_classes: int) -> list[list[object]]:
    """Class probabilities, vector scaling and metrics of the same rows on the host and on the device."""
    import sklearn
    import torch
    from sklearn.linear_model import LogisticRegression

    from dichotomies import NestedDichotomyClassifier
    from dichotomies.calibrators import MULTICLASS
    from dichotomies.metrics import RowFacts

    os.sched_setaffinity(0, {0, 1})
    X, y = rows(n_rows, n_features, n_classes)
    few = np.concatenate([np.arange(n_classes), np.arange(n_classes, 4 * n_classes)])
    classifier = NestedDichotomyClassifier(
        LogisticRegression(C=0.01), structure="class-balanced", internal_calibration="platt",
        external_calibration=None, n_jobs=2, random_state=0,
    ).fit(X[few], y[few])  # fmt: skip
    on_device, size, table = torch.as_tensor(X).to("cuda"), (n_rows, n_features, n_classes), []

    def both(work: str, host: Callable[[], Any], device: Callable[[], Any], difference: Any) -> Any:
        host(), device()  # compiles, and starts the device
        host_s, of_host = _timed(host)
        device_s, of_device = _timed(device)
        table.append(_row(work, size, host_s, device_s, f"{difference(of_host, of_device):.1g}"))
        return of_host, of_device

    with sklearn.config_context(array_api_dispatch=True):
        log_proba, there = both(
            "class probabilities",
            lambda: classifier.predict_log_proba(X),
            lambda: classifier.predict_log_proba(on_device),
            lambda a, b: np.abs(np.exp(a) - np.exp(b.cpu().numpy())).max(),
        )
        log_proba = log_proba.astype(np.float32)
        both(
            "vector scaling",
            lambda: MULTICLASS.create("vector", n_jobs=2).fit(log_proba, y),
            lambda: MULTICLASS.create("vector").fit(there, y),
            lambda a, b: np.abs(a.scale_ - b.scale_).max(),
        )
        both(
            "metrics",
            lambda: RowFacts.from_predictions(y, log_proba, is_log=True, top_k=(1, 5)),
            lambda: RowFacts.from_predictions(y, there, is_log=True, top_k=(1, 5)),
            lambda a, b: np.abs(a.log_proba - b.log_proba).max(),
        )
    return table


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    import torch

    torch.cuda.synchronize()
    begun = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - begun, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", default=["1000000x1000x1000"], help="rows x features x classes")
    parser.add_argument("--answers", default="200000x1000x1000", help="size of the rows that are predicted")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds that the two cores may take")
    parser.add_argument("--save", action="store_true", help="write the page")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        seconds, answer = train(given.one, given.folder)
        (given.folder / f"{given.one}.txt").write_text(str(seconds))
        np.save(given.folder / f"{given.one}_answer.npy", answer)
        return
    table = []
    for text in given.sizes:
        table.append(two_sides(_size(text), given.limit))
        print(table[-1], flush=True)
    if given.answers:
        table += answers(*_size(given.answers))
    if given.save:
        import torch

        gpu, host = torch.cuda.get_device_name(), f"two cores of an {_processor()}"
        text = TEXT.format(cores=host, gpu=gpu, limit=f"{given.limit:g}")
        report("gpu", text, HEADER, table, save=True)
    else:
        print(*table, sep="\n")


def _size(text: str) -> tuple[int, int, int]:
    n_rows, n_features, n_classes = map(int, text.split("x"))
    return n_rows, n_features, n_classes


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "the machine")


if __name__ == "__main__":
    main()
