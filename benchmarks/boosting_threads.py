"""Idle threads while boosted trees are trained over nodes, and what threads over features could gain.

Nodes are trained one after the other, and their processor times replayed on several threads in the order in
which a fit starts them, so that other work on the machine does not matter.
"""

from __future__ import annotations

import heapq
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from benchmarks.race import arguments, report, seconds
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier
from dichotomies._common.parallel import even_batches
from dichotomies.learners.boosting import training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray, IntArray

N_FEATURES, N_THREADS = 50, (2, 4, 8)

#: Rows and classes, and the share of rows in the largest class, 0 where all are equal.
SHAPES = [(200_000, 2, 0.0), (200_000, 3, 0.0), (200_000, 8, 0.0), (200_000, 8, 0.6), (100_000, 100, 0.0)]

TEXT = """
# Threads over nodes, and over features

`n_jobs` trains the nodes of a tree, of all models, in threads; one node is trained by one thread, so that the
root, which has all rows, bounds the gain. Every node of generated problems ({n_features} features, default
parameters) was trained alone, and the processor times replayed on 2, 4 and 8 threads. *Busy* is the share of
the threads' time in which they train: first with the nodes in their order in the tree, model after model;
then longest first by their rows, which is what a fit does. Without calibration there is one model; with it,
one more for each fold.

Threads over features would help where the second share is low: two threads are busy for less than 90 % of the
time only where there are two or three classes and no calibration. They are not built, because they would gain
little. At a root with 200,000 rows, a tree of 63 leaves takes {tree:.1f} ms, {share:.0f} % of it for
histograms and their splits (by the time that more features per tree take), the rest for what goes over rows:
gradients, draws, dividing rows between leaves, and the leaves' steps. Halving the former would take
{gain:.0f} % off the time at the root, if threads waited for one another at no cost. But it is {split:.0f} µs
for each of the 62 splits on average, and to hand a task to each of two threads of Python, and wait for both,
takes {handing:.0f} µs on the busy machine on which this was
measured: more than half of a split, on average, which is what is saved.
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


def costs_of(X: FloatArray, y: IntArray, *, calibrated: bool) -> tuple[IntArray, FloatArray]:
    """Rows of every node, and the processor seconds of each model at each node, shape (n_models, n_nodes)."""
    taken: list[tuple[int, int, float]] = []
    sizes: list[IntArray] = []

    def one_by_one(n_rows: IntArray, _: Any) -> list[range]:
        sizes.append(n_rows)
        return [range(i, i + 1) for i in range(len(n_rows))]

    given: dict[str, Any] = {} if calibrated else {"internal_calibration": None, "external_calibration": None}
    model = NestedDichotomyClassifier(HistGradientBoostClassifier(), random_state=0, **given)
    with timing(taken), patch.object(training, "even_batches", one_by_one):
        model.fit(X, y)
    ordered = sorted(taken, key=lambda each: (each[0] < 0, *each[:2]))  # the model of all rows is last
    return sizes[0], np.array([cost for *_, cost in ordered]).reshape(-1, len(sizes[0]))


def replayed(tasks: Sequence[float], n_threads: int) -> float:
    """Seconds until the last task is done, each started by the first thread that is free."""
    free = [0.0] * n_threads
    for cost in tasks:
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


def busy(sizes: IntArray, costs: FloatArray, n_threads: int) -> list[str]:
    """Share of the threads' time that is work, in the order of the tree and longest first."""
    batches = even_batches(sizes, n_threads)
    tasks = [float(model[batch.start : batch.stop].sum()) for model in costs for batch in batches]
    n_folds = len(costs) - 1  # models of folds come first
    shares = [1 - 1 / max(n_folds, 1)] * n_folds + [1.0]
    n_rows = [share * sizes[batch.start : batch.stop].sum() for share in shares for batch in batches]
    longest_first = [tasks[i] for i in np.argsort(-np.array(n_rows), kind="stable")]
    ends = replayed(tasks, n_threads), replayed(longest_first, n_threads)
    return [f"{100 * sum(tasks) / n_threads / end:.0f} %" for end in ends]


def root_of(share: float | str, X: FloatArray, y: IntArray) -> tuple[float, int]:
    """Processor seconds at the root with a share of the features for every tree, and its number of trees."""
    model = HistGradientBoostClassifier(max_tree_features=share)
    taken: list[tuple[int, int, float]] = []
    with timing(taken):
        model.fit(X, y)
    return taken[0][2], model.n_trees_


def parts_of_root(repeats: int) -> dict[str, float]:
    """Milliseconds of a tree at a root, the share of histograms in percent, and microseconds of a split."""
    X, y = problem(200_000, 2, 0.0)
    few, default = 1 / np.sqrt(N_FEATURES), 2 / np.sqrt(N_FEATURES)
    runs = [[root_of(share, X, y) for share in (few, default)] for _ in range(repeats)]
    (less, _), (whole, n_trees) = np.min(runs, axis=0)
    share = (whole - less) * default / (default - few) / whole
    tree = whole / n_trees
    return {
        "tree": 1e3 * tree,
        "share": 100 * share,
        "split": 1e6 * tree * share / 62,
        "gain": 50 * share,
        "handing": 1e6 * _handing_over(),
    }


def _handing_over(n: int = 2_000) -> float:
    """Seconds to give a task to each of two threads, and to wait until both are done."""
    with ThreadPoolExecutor(2) as pool:
        return seconds(lambda: [list(pool.map(abs, (1, 2))) for _ in range(n)]) / n


def main() -> None:
    """Replay all shapes, and take the root apart."""
    options, rows = arguments(__doc__, repeats=3), []
    for n_rows, n_classes, largest in SHAPES:
        X, y = problem(n_rows, n_classes, largest)
        for calibrated in (False, True):
            sizes, costs = costs_of(X, y, calibrated=calibrated)
            shape = f"{n_classes}, one with {largest:.0%}" if largest else f"{n_classes}"
            begin = [f"{n_rows:,}", shape, len(costs), f"{costs.sum():.1f}"]
            shares = [" / ".join(busy(sizes, costs, n)) for n in N_THREADS]
            rows.append([*begin, *shares])
            print(rows[-1], flush=True)
    text = TEXT.strip().format(n_features=N_FEATURES, **parts_of_root(options.repeats))
    header = ["rows", "classes", "models", "work, s", *(f"{n} threads: busy" for n in N_THREADS)]
    report("boosting_threads", text + "\n", header, rows, save=options.save)


if __name__ == "__main__":
    main()
