"""Fits on two Dask workers and on Ray beside local threads, also with one killed; costs replayed on more."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from benchmarks import cluster_page, problems
from benchmarks.race import RESULTS
from dichotomies import NestedDichotomyClassifier
from dichotomies._common import cluster, parallel
from dichotomies.learners import generic
from dichotomies.learners.boosting import HistGradientBoostClassifier
from dichotomies.learners.boosting import training as boosting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEARNERS = {
    "naive Bayes": GaussianNB(),
    "logistic regression": LogisticRegression(),
    "boosted trees": HistGradientBoostClassifier(n_estimators=5),
    "clones of a decision tree": DecisionTreeClassifier(max_depth=3, max_features="sqrt"),
}
STORE = RESULTS / "cluster.json"
N_WORKERS, N_PAIRS = 2, 3


def classifier(estimator: Any, n_jobs: int) -> NestedDichotomyClassifier:
    """One tree, calibrated at its nodes by scores out of two folds: three models of every node."""
    return NestedDichotomyClassifier(
        estimator,
        structure="2-means",
        internal_calibration="platt",
        external_calibration=None,
        cv=2,
        random_state=0,
        n_jobs=n_jobs,
    )


# ---------------------------------------------------------------------- clusters of this machine


@contextmanager
def dask_workers() -> Iterator[dict[str, Any]]:
    """Two workers of one thread each."""
    dask: Any = import_module("distributed")  # without types for what is called here
    workers = dask.LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0")
    with workers, dask.Client(workers) as client:
        _count_bytes()
        client.run(_count_bytes)
        yield {"backend": "dask", "client": client}


@contextmanager
def ray_workers() -> Iterator[dict[str, Any]]:
    """Two workers."""
    ray: Any = import_module("ray")
    ray.init(num_cpus=N_WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")
    import_module("ray.util.joblib").register_ray()
    try:
        yield {"backend": "ray", "n_jobs": -1}
    finally:
        ray.shutdown()


ENGINES = {"dask": dask_workers, "ray": ray_workers}


def _count_bytes() -> None:
    """Count what this process writes to Dask's connections, as an attribute of their class."""
    connections = _connections()
    write = connections.write

    async def counting(self: Any, *arguments: Any, **named: Any) -> int:
        n_bytes: int = await write(self, *arguments, **named)
        connections.sent += n_bytes
        return n_bytes

    if not hasattr(connections, "sent"):
        connections.sent, connections.write = 0, counting


def _connections() -> Any:
    from distributed.comm.tcp import TCP

    return TCP


def _sent() -> int:
    n_bytes: int = _connections().sent
    return n_bytes


def _bytes_sent(config: dict[str, Any]) -> int:
    return _sent() + sum(config["client"].run(_sent).values()) if "client" in config else 0


def _processor_time() -> float:
    """Seconds of this process and all that it has started."""
    import psutil

    total = time.process_time()
    for child in psutil.Process().children(recursive=True):
        times = child.cpu_times()
        total += times.user + times.system
    return total


def _busy_workers(config: dict[str, Any], pids: dict[str, int]) -> list[int]:
    """Processes that have tasks."""
    import psutil

    if "client" in config:
        return [pids[worker] for worker, tasks in config["client"].processing().items() if tasks]
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if child.name().startswith("ray::PoolActor")]


# ---------------------------------------------------------------------- fits


def timed(work: Callable[[], Any]) -> float:
    """Seconds of all processors."""
    begun = _processor_time()
    work()
    return _processor_time() - begun


def measured(engine: str, estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    """Fits on a cluster and by local threads, in turn; the medians of processor time."""
    model, probe = classifier(estimator, N_WORKERS), X[:: max(1, len(X) // 2000)]
    expected = model.fit(X, y).predict_log_proba(probe)  # kernels are compiled
    found, here, there = dict[str, Any](), list[float](), list[float]()
    with ENGINES[engine]() as config:
        with parallel_config(**config):
            model.fit(X, y)  # workers are warm
        for _ in range(N_PAIRS):
            here.append(timed(lambda: model.fit(X, y)))
            with parallel_config(**config):
                before = _bytes_sent(config)
                there.append(timed(lambda: model.fit(X, y)))
                found["sent"] = _bytes_sent(config) - before
        found |= {"processors": median(there), "local": median(here)}
        found["equal"] = bool((model.predict_log_proba(probe) == expected).all())
        with parallel_config(**config):
            if engine == "dask" and isinstance(estimator, DecisionTreeClassifier):
                before = _bytes_sent(config)
                with patch.object(parallel.Context, "is_on_cluster", lambda *_: False):
                    model.fit(X, y)
                found["joblib"] = _bytes_sent(config) - before
            # last, because a worker that is started in place of the killed one counts no bytes
            found["killed"] = _with_a_killed_worker(lambda: model.fit(X, y), config, probe, expected)
    return found


def _with_a_killed_worker(
    fit: Callable[[], Any], config: dict[str, Any], probe: Any, expected: Any
) -> dict[str, Any]:
    """Kill a worker that has tasks; say whether one was, and whether the result is the same."""
    killed, over = list[int](), threading.Event()
    pids = config["client"].run(os.getpid) if "client" in config else {}

    def kill() -> None:
        while not killed and not over.wait(0.05):
            for pid in _busy_workers(config, pids)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    model = fit()
    over.set()
    killer.join()
    equal = bool((model.predict_log_proba(probe) == expected).all())
    return {"equal": equal, "n_killed": len(killed)}


# ---------------------------------------------------------------------- costs of nodes


class _Stopwatch:
    """Runs tasks here, one after the other, and notes how long each takes."""

    def __init__(self) -> None:
        self.tasks: list[float] = []
        self.setup = self.again = 0.0  # what the first task of a worker takes longer, and what was done twice

    def results(self, function: Any, shared: Any, arguments: Any, *_: Any) -> Iterator[tuple[int, Any]]:
        """Call ``function(shared, *each)`` for each tuple of arguments, the first of them twice."""
        begun = time.process_time()
        function(shared, *arguments[0])
        first = time.process_time() - begun
        for i, each in enumerate(arguments):
            begun = time.process_time()
            result = function(shared, *each)
            self.tasks.append(time.process_time() - begun)
            if i == 0:
                self.setup += max(0.0, first - self.tasks[-1])
                self.again += self.tasks[-1]
            yield i, result


def node_costs(estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    """Seconds of a fit on one core, and those of every node and model, as they are started."""
    watch = _Stopwatch()
    with ExitStack() as patched:
        patched.enter_context(patch.object(parallel.Context, "is_on_cluster", lambda *_: True))
        patched.enter_context(patch.object(cluster, "results", watch.results))
        for module in (generic, boosting):
            patched.enter_context(patch.object(module, "even_batches", _one_by_one))
        begun = time.process_time()
        classifier(estimator, 1).fit(X, y)
        seconds = time.process_time() - begun - watch.again
    return {"fit": seconds, "setup": watch.setup, "tasks": [round(each, 5) for each in watch.tasks]}


def _one_by_one(sizes: Any, *_: Any) -> list[range]:
    return [range(i, i + 1) for i in range(len(sizes))]


def task_overhead() -> float:
    """Seconds of all processors that Dask takes for a task that does nothing."""
    n_tasks = 500
    with dask_workers() as config, parallel_config(**config):
        tasks = [()] * n_tasks
        list(cluster.results(_nothing, None, tasks, None, {}))
        return timed(lambda: list(cluster.results(_nothing, None, tasks, None, {}))) / n_tasks


def _nothing(shared: None) -> None:
    return shared


PARTS: dict[str, Callable[[Any, Any, Any], dict[str, Any]]] = {
    "dask": partial(measured, "dask"),
    "ray": partial(measured, "ray"),
    "costs": node_costs,
}


def _stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {"learners": {}}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--learner", choices=LEARNERS, action="append", help="measure only this; the rest is kept"
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="measure this; keep the rest")
    parser.add_argument("--save", action="store_true", help="write the page and the figure to docs/")
    options = parser.parse_args()
    problem = problems.kanji_fonts(1000)
    X = np.ascontiguousarray(problem.X, dtype=np.float64)
    warnings.simplefilter("ignore")
    parallel._WORTH_SENDING = 0.0  # whatever the size
    for name, part in product(options.learner or LEARNERS, options.part or PARTS):
        found = PARTS[part](LEARNERS[name], X, problem.y)
        store = _stored()
        store["learners"].setdefault(name, {})[part] = found
        store |= {"size": problem.size, "bytes": X.nbytes}
        if "overhead" not in store:
            store["overhead"] = task_overhead()
        STORE.write_text(json.dumps(store))
    cluster_page.write(_stored(), save=options.save)


if __name__ == "__main__":
    main()
