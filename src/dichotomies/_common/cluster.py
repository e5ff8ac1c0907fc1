"""Work on a Dask or Ray cluster, that of joblib's active backend (``joblib.parallel_config``).

joblib itself would send its arguments again with every batch of tasks, and ends the call when a Ray worker
dies; so tasks go to the cluster's own interface here, which runs those of a dead worker again on another.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context, get_config

from dichotomies._common.parallel import FORK_GATE, ONE_BLAS_THREAD
from dichotomies._common.shipping import LARGE, drop, optional, shipment, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dichotomies._common.shipping import Parcel, Shipment

#: Times that a task is tried on workers that die.
_ATTEMPTS = 4


class Cluster(ABC):
    """Workers of joblib's active backend."""

    def results(
        self,
        function: Callable[..., Any],
        shared: Any,
        arguments: Sequence[tuple[Any, ...]],
        costs: Sequence[float] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Call ``function(shared, *each)`` for each tuple of arguments; yield its number and the result.

        Parameters
        ----------
        function : callable
            A function of a module, or a method of a class.
        shared : object
            Sent once per worker. Changes that a task makes to it stay in that worker.
        costs : sequence of float, optional
            Expected cost of each task: the most expensive ones start first.

        Yields
        ------
        number, result
            In the order in which tasks end.
        """
        order = range(len(arguments)) if costs is None else np.argsort(-np.asarray(costs), kind="stable")
        tasks = {int(i): arguments[i] for i in order}
        with shipment() as shipped:
            yield from self._run(_Call(function, get_config()), shipped, shared, tasks)

    @abstractmethod
    def place(self, value: Any) -> Any:
        """Put a value on the workers; return the reference that tasks take in its place."""

    @abstractmethod
    def forget(self, shipped: Shipment) -> None:
        """Free what was placed."""

    @abstractmethod
    def _run(
        self, call: _Call, shipped: Shipment, shared: Any, tasks: dict[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Start tasks in the order in which they are given."""


@dataclass(frozen=True)
class _Call:
    """A function that a worker calls as scikit-learn is configured where the task comes from."""

    function: Callable[..., Any]
    config: dict[str, Any]

    def __call__(self, shared: Any, arguments: tuple[Any, ...]) -> Any:
        with config_context(**self.config), ONE_BLAS_THREAD, FORK_GATE:
            return self.function(shared, *arguments)


class DaskCluster(Cluster):
    """Workers of a Dask client. Dask runs the tasks of a dead worker again on another."""

    def __init__(self, backend: Any) -> None:
        self.client = backend.client

    def place(self, value: Any) -> Any:
        """Scatter a value to all workers, which pass it on among themselves."""
        return self.client.scatter(value, broadcast=True, hash=False)

    def forget(self, shipped: Shipment) -> None:
        """Free what was placed."""
        self.client.cancel(list(shipped.references.values()), force=True)
        self.client.run(drop, shipped.name, on_error="ignore")

    def _run(
        self, call: _Call, shipped: Shipment, shared: Any, tasks: dict[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        for _ in range(_ATTEMPTS):
            futures = self._submit(call, shipped, shared, tasks)
            try:
                for i, result in _finished(futures):
                    del tasks[i]
                    yield i, result
            finally:
                if tasks:
                    self.client.cancel([each for each, i in futures.items() if i in tasks], force=True)
            if not tasks:
                return
            shipped.references.clear()  # what they stood for is lost
        raise RuntimeError(
            f"{len(tasks)} tasks were lost {_ATTEMPTS} times, with all workers that held their rows. "
            "Workers are killed when their memory is full: give them more."
        )

    def _submit(
        self, call: _Call, shipped: Shipment, shared: Any, tasks: dict[int, tuple[Any, ...]]
    ) -> dict[Any, int]:
        parcel, name = shipped.parcel(shared), f"{call.function.__name__}-{uuid4().hex}"
        futures = self.client.map(
            _dask_task,
            [self._light(each) for each in tasks.values()],  # Dask starts them in this order
            call=call,
            parcel=shipped.reference(self, parcel.name),
            names=parcel.arrays,
            arrays=[shipped.reference(self, each) for each in parcel.arrays],
            key=[f"{name}-{i}" for i in tasks],
        )
        return dict(zip(futures, tasks, strict=True))

    def _light(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments with references to large ones, each of which is on one worker."""
        return tuple(
            self.client.scatter(each, hash=False) if _n_bytes(each) >= LARGE else each for each in arguments
        )


def _n_bytes(value: Any) -> int:
    return int(getattr(getattr(value, "data", None), "nbytes", 0))  # of an array, or a sparse matrix


def _dask_task(
    arguments: tuple[Any, ...], *, call: _Call, parcel: Parcel, names: Sequence[str], arrays: Sequence[Any]
) -> Any:
    return call(unpacked(parcel, lambda: dict(zip(names, arrays, strict=True))), arguments)


def _finished(futures: dict[Any, int]) -> Iterator[tuple[int, Any]]:
    """Number and result of each task as it ends; tasks whose rows were lost are left out."""
    for future in optional("distributed").as_completed(list(futures)):
        try:
            result = future.result()
        except CancelledError:
            continue
        yield futures[future], result
        future.release()


class RayCluster(Cluster):
    """Workers of Ray. Ray runs the tasks of a dead worker again on another."""

    def __init__(self, backend: Any) -> None:
        self._options = backend.ray_remote_args or {}

    def place(self, value: Any) -> Any:
        """Put a value into the object store, from which every machine fetches it once."""
        return optional("ray").put(value)

    def forget(self, shipped: Shipment) -> None:
        """Free what was placed; Ray frees what no reference stands for."""

    def _run(
        self, call: _Call, shipped: Shipment, shared: Any, tasks: dict[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        ray = optional("ray")
        parcel = shipped.parcel(shared)
        where = [shipped.reference(self, name) for name in parcel.arrays]
        what = shipped.reference(self, parcel.name)
        function = ray.put(call)
        start = ray.remote(**{"max_retries": _ATTEMPTS, **self._options})(_ray_task).remote
        number = {start(function, each, what, where): i for i, each in tasks.items()}
        left = list(number)
        try:
            while left:
                [done], left = ray.wait(left, num_returns=1)
                yield number[done], ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        finally:
            for each in left:
                ray.cancel(each)


def _ray_task(call: _Call, arguments: tuple[Any, ...], parcel: Parcel, where: Sequence[Any]) -> Any:
    def arrays() -> dict[str, Any]:
        return dict(zip(parcel.arrays, optional("ray").get(list(where)), strict=True))

    return call(unpacked(parcel, arrays), arguments)


def connected(backend: Any, n_jobs: int | None) -> Cluster | None:
    """Cluster of a backend of joblib; None where work stays in this process.

    It stays there in tasks of a cluster, too, such as the fits of a grid search.
    """
    if _is_in_dask_task() or effective_n_jobs(n_jobs) == 1:
        return None
    return RayCluster(backend) if type(backend).__name__ == "RayBackend" else DaskCluster(backend)


def _is_in_dask_task() -> bool:
    dask = sys.modules.get("distributed.utils")
    return dask is not None and hasattr(dask.thread_state, "execution_state")
