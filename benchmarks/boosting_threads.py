"""Threads that train boosted trees: over nodes, and together at large nodes.

Fits are timed with one thread and with two. For more threads than this machine may have, nodes are trained
one after the other, and their processor times replayed in the order in which a fit starts them.
"""

from __future__ import annotations

import heapq
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from benchmarks.race import arguments, report, seconds
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier
from dichotomies._common import parallel
from dichotomies._common.parallel import even_batches
from dichotomies.learners.boosting import training

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

N_FEATURES, N_THREADS = 50, (2, 4, 8)

#: Rows and classes, and the share of rows in the largest class, 0 where all are equal.
SHAPES = [(200_000, 2, 0.0), (200_000, 3, 0.0), (200_000, 8, 0.0), (200_000, 8, 0.6), (100_000, 100, 0.0)]

TEXT = """
# Threads over nodes, and at large nodes over rows and features

`n_jobs` threads train the nodes of a tree, of all models, longest first. The longest are trained by all
threads together, if all is done sooner that way: each thread sums the histograms of its own rows in all
features, and then adds up those of all threads, and finds the best splits, in a part of the features.
Gradients, the division of rows between leaves and the leaves' values are computed for its own rows, too.
Generated problems, {n_features} features, default parameters. Without calibration there is one model; with
it, one more for each fold.

*Times faster* compares a fit by two threads with one by a single thread, on {cores} cores, including what one
thread does; the least of {repeats} times each, kernels being loaded. *Busy* is the share of the threads' time
in which they train, simulated: the processor times of all nodes, each trained alone, are replayed on so many
threads, and waiting for one another costs nothing. Of two numbers, the first is with every node trained by
one thread, the second with large nodes trained by all. Where nothing is divided, both fits do the same, and
the difference is noise.
"""


def problem(n_rows: int, n_classes: int, largest: float) -> tuple[FloatArray, IntArray]:
    """Overlapping classes, a half of whose features tell them apart."""
    rng = np.random.default_rng(0)
    shares = np.full(n_classes, 1 / n_classes)
    if largest:
        shares[0], shares[1:] = largest, (1 - largest) / (n_classes - 1)
    y = rng.choice(n_classes, size=n_rows, p=shares)
    centres = rng.normal(size=(n_classes, N_FEATURES)) * (np.arange(N_FEATURES) % 2) / 2
    return rng.normal(size=(n_rows, N_FEATURES)) + centres[y], y


def timing(taken: list[tuple[int, int, float]]) -> Any:
    """Train as usual, writing down the fold left out, the first node and the processor seconds of batches."""
    train = training._train_batch

    def timed(shared: Any, nodes: range, excluded: int) -> Any:
        begun = time.process_time()
        result = train(shared, nodes, excluded)
        taken.append((excluded, nodes.start, time.process_time() - begun))
        return result

    return patch.object(training, "_train_batch", timed)


def model_of(*, calibrated: bool, n_jobs: int = 1) -> NestedDichotomyClassifier:
    """The default model, or one without calibration."""
    given: dict[str, Any] = {} if calibrated else {"internal_calibration": None, "external_calibration": None}
    return NestedDichotomyClassifier(HistGradientBoostClassifier(), random_state=0, n_jobs=n_jobs, **given)


def costs_of(X: FloatArray, y: IntArray, *, calibrated: bool) -> tuple[IntArray, FloatArray]:
    """Rows of every node, and the processor seconds of each model at each node, shape (n_models, n_nodes)."""
    taken: list[tuple[int, int, float]] = []
    sizes: list[IntArray] = []

    def one_by_one(n_rows: IntArray, _: Any) -> list[range]:
        sizes.append(n_rows)
        return [range(i, i + 1) for i in range(len(n_rows))]

    with timing(taken), patch.object(training, "even_batches", one_by_one):
        model_of(calibrated=calibrated).fit(X, y)
    ordered = sorted(taken, key=lambda each: (each[0] < 0, *each[:2]))  # the model of all rows is last
    return sizes[0], np.array([cost for *_, cost in ordered]).reshape(-1, len(sizes[0]))


def replayed(tasks: FloatArray, n_threads: int) -> float:
    """Seconds until the last task is done, each started by the first thread that is free."""
    free = [0.0] * n_threads
    for cost in tasks.tolist():
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


def busy(sizes: IntArray, costs: FloatArray, n_threads: int) -> str:
    """Share of the threads' time that is work, with one thread for each node and with large ones divided."""
    batches = even_batches(sizes, n_threads)
    tasks = np.array([model[batch.start : batch.stop].sum() for model in costs for batch in batches])
    n_folds = len(costs) - 1  # models of folds come first
    shares = [1 - 1 / max(n_folds, 1)] * n_folds + [1.0]
    n_rows = np.array(
        [share * sizes[batch.start : batch.stop].sum() for share in shares for batch in batches]
    )
    order = np.argsort(-n_rows, kind="stable")
    tasks = tasks[order]
    n = parallel._n_divided(tasks, n_threads)
    ends = replayed(tasks, n_threads), tasks[:n].sum() / n_threads + replayed(tasks[n:], n_threads)
    return " / ".join(f"{100 * tasks.sum() / n_threads / end:.0f} %" for end in ends)


def gains(X: FloatArray, y: IntArray, *, calibrated: bool, repeats: int) -> str:
    """Time by one thread relative to that by two: a thread for each node, or large nodes divided."""
    least = []
    for n_jobs, worth_dividing in ((1, np.inf), (2, np.inf), (2, parallel._WORTH_DIVIDING)):
        with patch.object(parallel, "_WORTH_DIVIDING", worth_dividing):
            fit = model_of(calibrated=calibrated, n_jobs=n_jobs).fit
            least.append(min(seconds(partial(fit, X, y)) for _ in range(repeats)))
    return " / ".join(f"{least[0] / each:.2f}" for each in least[1:])


def main() -> None:
    """Time and replay all shapes."""
    options, rows = arguments(__doc__, repeats=3), []
    for n_rows, n_classes, largest in SHAPES:
        X, y = problem(n_rows, n_classes, largest)
        for calibrated in (False, True):
            sizes, costs = costs_of(X, y, calibrated=calibrated)
            shape = f"{n_classes}, one with {largest:.0%}" if largest else f"{n_classes}"
            measured = gains(X, y, calibrated=calibrated, repeats=options.repeats)
            shares = [busy(sizes, costs, n) for n in N_THREADS]
            rows.append([f"{n_rows:,}", shape, len(costs), measured, *shares])
            print(rows[-1], flush=True)
    text = TEXT.strip().format(n_features=N_FEATURES, repeats=options.repeats, cores=os.cpu_count())
    replays = [f"{n} threads: busy" for n in N_THREADS]
    header = ["rows", "classes", "models", "two threads: times faster", *replays]
    report("boosting_threads", text + "\n", header, rows, save=options.save)


if __name__ == "__main__":
    main()
