"""The page of `benchmarks.cluster`: its table, and costs of nodes replayed on any number of workers."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from benchmarks.race import RESULTS, report
from dichotomies._common.parallel import even_batches

#: Bytes per second of the network that is assumed where costs are replayed.
BANDWIDTH = 1e9
WORKERS = [1, 2, 4, 8, 16, 32, 64, 128, 256]

HEADER = [
    "learner", "on", "equal to local, bit for bit", "bytes sent, of X",
    "processor time, of local threads'", "a worker killed: equal",
]  # fmt: skip
TEXT = """
# Dask and Ray workers beside local threads

{size}, one tree of `2-means`, Platt scaling at the nodes by scores out of two folds (three models of every
node). Two Dask workers with a thread each, or two Ray workers, against two threads of one process, all on
the same machine with two cores, and all work is sent, although little of it is worth it. Once
workers have imported the package and loaded its kernels, three fits of either kind are measured, in turn; the
ratio is that of the medians of processor time, of all processes together. Bytes are all that Dask's
processes wrote to their connections, results and the scheduler's messages included. What tasks share goes to
the scheduler, from there to one worker, and from it to the other, and so counts three times (twice with
`Client(direct_to_workers=True)`). On one machine Ray shares memory. {joblib}
Naive Bayes is one pass over the rows, and nodes of logistic regression take little time: both stay in the
calling process. In another fit, a worker gets `SIGKILL` as soon as it has tasks.

On two cores a cluster cannot be faster than two threads; the table shows what it costs. What it gains with
more is replayed from the costs of all nodes, measured on one core: tasks are cut as for that many workers
and go, the most expensive first, to the worker that is free first; each takes {overhead:.1f} ms more, the
processor time of an empty task of Dask; the rows are sent at 1 GB/s, and every worker prepares them (this,
sending the rows, and the tasks' own overhead are what workers cost more than threads); what is not sent
(growing the tree, binning, calibrating, joining) stays on one core. Parts of this page are measured one by
one and stored, so that they may come from different runs.

![Speed-up of a fit by the number of workers](../figures/cluster.svg)

{limits}
"""


def write(store: dict[str, Any], *, save: bool) -> None:
    """Print the table of what is complete; write the page and ``docs/figures/cluster.svg`` if asked."""
    rows = [
        _row(name, engine, found, store["bytes"])
        for name, found in store["learners"].items()
        for engine in ("dask", "ray")
        if engine in found
    ]
    by_dask = [found["dask"] for found in store["learners"].values() if "dask" in found]
    sent = max((found.get("joblib", 0) for found in by_dask), default=0) / store["bytes"]
    joblib = f"Left to joblib's own backend for Dask, the clones send {sent:.0f} times X." if sent else ""
    replayed = {
        name: [speed_up(found["costs"], n, store["overhead"], store["bytes"]) for n in WORKERS]
        for name, found in store["learners"].items()
        if found.get("costs", {}).get("tasks")
    }
    limits = [_limit(name, store["learners"][name]["costs"], replayed[name]) for name in replayed]
    text = TEXT.format(
        size=store["size"], joblib=joblib, overhead=1e3 * store["overhead"], limits="\n".join(limits)
    )
    print(text)
    report("cluster", text, HEADER, rows, save=save)
    if save:
        _draw(replayed)


def _row(name: str, engine: str, found: dict[str, Any], n_bytes: int) -> list[str]:
    there = found[engine]
    killed, is_sent = there["killed"], bool(found["costs"]["tasks"])
    undisturbed = "yes" if killed["equal"] else "NO"
    return [
        name,
        engine.capitalize(),
        "yes" if there["equal"] else "NO",
        f"{there['sent'] / n_bytes:.1f}x" if engine == "dask" else "",
        f"{there['processors'] / there['local']:.2f}x",
        undisturbed if killed["n_killed"] and is_sent else "not sent",
    ]


def _limit(name: str, costs: dict[str, Any], speed_ups: list[float]) -> str:
    total = costs["fit"]
    share, largest = sum(costs["tasks"]) / total, max(costs["tasks"]) / total
    best = max(speed_ups)
    enough = next(n for n, each in zip(WORKERS, speed_ups, strict=True) if each >= 0.9 * best)
    return (
        f"- {name}: {total:.1f} s on one core, of which {share:.0%} can be sent, and "
        f"{costs['setup'] / total:.0%} is preparing the rows, which every worker does; the largest task is "
        f"{largest:.1%}. At most {best:.1f} times as fast, of which nine tenths with {enough} workers."
    )


def speed_up(costs: dict[str, Any], n_workers: int, overhead: float, n_bytes: int) -> float:
    """Times that a fit on one core takes, of one on so many workers."""
    seconds = np.array(costs["tasks"])
    alone = costs["fit"] - costs["setup"] - seconds.sum()
    if n_workers == 1:
        return 1.0
    batches = even_batches(seconds, n_workers)
    batches.sort(key=lambda batch: -seconds[batch.start : batch.stop].sum())
    free = [0.0] * n_workers
    for batch in batches:
        heapq.heapreplace(free, free[0] + overhead + seconds[batch.start : batch.stop].sum())
    return float(costs["fit"] / (alone + n_bytes / BANDWIDTH + costs["setup"] + max(free)))


def _draw(replayed: dict[str, list[float]]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "dichotomies", "font.size": 9})
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for name, speed_ups in replayed.items():
        axes.plot(WORKERS, speed_ups, marker="o", markersize=3, label=name)
    axes.plot(WORKERS[:7], WORKERS[:7], color="0.7", linestyle="--", label="ideal")
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="times as fast as one core")
    axes.set_xticks(WORKERS, [str(n) for n in WORKERS])
    axes.set_yticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.savefig(RESULTS.parent / "figures" / "cluster.svg", metadata={"Date": None})
