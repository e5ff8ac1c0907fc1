"""Work on a Dask or Ray cluster: rows travel once per worker, and a worker that dies costs time, not the fit.

The cluster is that of joblib's active backend (``joblib.parallel_config``). joblib itself would send its
arguments again with every batch of tasks, and ends the call when a Ray worker dies; so tasks go to the
cluster's own interface here. What they share is pickled once, with large arrays and `Rows` put aside: each of
those is placed on the workers once per `shipment`, and unpacked once in each process.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
from abc import ABC, abstractmethod
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config

from dichotomies._common.blas import FORK_GATE, ONE_BLAS_THREAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: Bytes from which an array is placed on the workers by itself.
_LARGE = 2**20

#: Shipments whose objects a worker keeps unpacked.
_KEPT_SHIPMENTS = 2

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


@contextmanager
def shipment() -> Iterator[Shipment]:
    """Place arrays and rows at most once until the end of the block, or of the one around it."""
    outer = _SHIPMENT.get()
    if outer is not None:
        yield outer
        return
    shipped = Shipment()
    token = _SHIPMENT.set(shipped)
    try:
        yield shipped
    finally:
        _SHIPMENT.reset(token)
        if shipped.cluster is not None:
            shipped.cluster.forget(shipped)


# ---------------------------------------------------------------------- sender


@dataclass(frozen=True)
class Parcel:
    """A pickled object without its large arrays.

    Attributes
    ----------
    name : str
        That of the shipment, and a number.
    content : bytes
    arrays : tuple of str
        Names of the large arrays in it.
    """

    name: str
    content: bytes
    arrays: tuple[str, ...]


class Shipment:
    """Parcels and arrays sent so far, with the references to where they are."""

    def __init__(self) -> None:
        self.name = uuid4().hex
        self.cluster: Cluster | None = None
        self._parcels: dict[int, tuple[Any, Parcel]] = {}  # with the object, so that its id stays its own
        self._arrays: dict[int, tuple[Any, str]] = {}
        self._values: dict[str, Any] = {}
        self.references: dict[str, Any] = {}

    def parcel(self, value: Any) -> Parcel:
        """Pack an object, or return the parcel in which it was packed before."""
        if id(value) not in self._parcels:
            content, arrays = self._packed(value)
            parcel = Parcel(f"{self.name}-{len(self._parcels)}", content, arrays)
            self._parcels[id(value)] = value, parcel
            self._values[parcel.name] = parcel
        return self._parcels[id(value)][1]

    def _packed(self, whole: Any) -> tuple[bytes, tuple[str, ...]]:
        """Pickle of an object without large arrays and what is shipped once; names of the arrays."""
        arrays: dict[str, None] = {}  # in their order

        def put_aside(value: Any) -> str | Parcel | None:
            if isinstance(value, np.ndarray) and value.nbytes >= _LARGE and not value.dtype.hasobject:
                name = self._name(value)
                arrays[name] = None
                return name
            if getattr(type(value), "is_shipped_once", False) and value is not whole:
                parcel = self.parcel(value)
                arrays.update(dict.fromkeys(parcel.arrays))
                return parcel
            return None

        file = io.BytesIO()
        pickler = optional("cloudpickle").Pickler(file, protocol=5)
        pickler.persistent_id = put_aside
        pickler.dump(whole)
        return file.getvalue(), tuple(arrays)

    def _name(self, value: Any) -> str:
        """Name of a large array."""
        if id(value) not in self._arrays:
            name = f"{self.name}-array-{len(self._arrays)}"
            self._arrays[id(value)] = value, name
            self._values[name] = value
        return self._arrays[id(value)][1]

    def reference(self, cluster: Cluster, name: str) -> Any:
        """Reference to a parcel or array on a cluster, where it is placed at the first call."""
        self.cluster = cluster
        if name not in self.references:
            self.references[name] = cluster.place(self._values[name])
        return self.references[name]


_SHIPMENT: ContextVar[Shipment | None] = ContextVar("shipment", default=None)


# ---------------------------------------------------------------------- receiver


@dataclass(frozen=True)
class _Call:
    """A function that a worker calls as scikit-learn is configured where the task comes from."""

    function: Callable[..., Any]
    config: dict[str, Any]

    def __call__(self, shared: Any, arguments: tuple[Any, ...]) -> Any:
        with config_context(**self.config), ONE_BLAS_THREAD, FORK_GATE:
            return self.function(shared, *arguments)


class _Unpacker(pickle.Unpickler):
    def __init__(self, parcel: Parcel, arrays: Callable[[], dict[str, Any]]) -> None:
        super().__init__(io.BytesIO(parcel.content))
        self._arrays = arrays

    def persistent_load(self, pid: str | Parcel) -> Any:
        return unpacked(pid, self._arrays) if isinstance(pid, Parcel) else self._arrays()[pid]


#: Objects by the names of their parcels, by shipment: what a worker has unpacked so far.
_UNPACKED: dict[str, dict[str, Any]] = {}
_UNPACKING = threading.RLock()


def unpacked(parcel: Parcel, arrays: Callable[[], dict[str, Any]]) -> Any:
    """Object of a parcel: the same one for all tasks of a process, with what they have computed on it."""
    shipped = parcel.name.partition("-")[0]
    with _UNPACKING:
        known = _UNPACKED.setdefault(shipped, {})
        for old in list(_UNPACKED)[:-_KEPT_SHIPMENTS]:
            del _UNPACKED[old]
        if parcel.name not in known:
            known[parcel.name] = _Unpacker(parcel, arrays).load()
        return known[parcel.name]


def drop(shipped: str) -> None:
    """Forget the objects of a shipment, in a worker."""
    with _UNPACKING:
        _UNPACKED.pop(shipped, None)


# ---------------------------------------------------------------------- clusters


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
        parcel = shipped.parcel(shared)
        names = parcel.name, *parcel.arrays
        references = [shipped.reference(self, name) for name in names]
        return {
            self.client.submit(
                _dask_task, call, self._light(each), parcel.arrays, *references,
                key=f"{call.function.__name__}-{uuid4().hex}", priority=-rank,
            ): i
            for rank, (i, each) in enumerate(tasks.items())
        }  # fmt: skip

    def _light(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments with references to large ones, each of which is on one worker."""
        return tuple(
            self.client.scatter(each, hash=False) if _n_bytes(each) >= _LARGE else each for each in arguments
        )


def _n_bytes(value: Any) -> int:
    return int(getattr(getattr(value, "data", None), "nbytes", 0))  # of an array, or a sparse matrix


def _dask_task(
    call: _Call, arguments: tuple[Any, ...], names: Sequence[str], parcel: Parcel, *arrays: Any
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


def optional(module: str) -> Any:
    """Import a module of an optional dependency; raise with installation instructions if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Clusters need {module}: pip install 'dichotomies[dask]', or 'dichotomies[ray]'."
        ) from error


_CLUSTERS = {"DaskDistributedBackend": DaskCluster, "RayBackend": RayCluster}


def active(n_jobs: int | None) -> Cluster | None:
    """Cluster of joblib's active backend; None where work stays on this machine.

    It stays there in tasks of a cluster, too, such as the fits of a grid search.
    """
    backend, _ = get_active_backend()
    kind = _CLUSTERS.get(type(backend).__name__)
    if kind is None or _is_in_dask_task() or effective_n_jobs(n_jobs) == 1:
        return None
    return kind(backend)


def _is_in_dask_task() -> bool:
    dask = sys.modules.get("distributed.utils")
    return dask is not None and hasattr(dask.thread_state, "execution_state")
