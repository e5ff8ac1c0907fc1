"""Tasks on workers of joblib's Dask or Ray backend: what they share is sent once, lost work is repeated.

What tasks share is pickled with its large arrays put aside. Each of those goes to the workers once per call,
such as a fit, and all tasks of a process get the same object, with what they have computed on it.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
from concurrent.futures import CancelledError
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from dichotomies._common.parallel import with_one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: Bytes from which an array is sent by itself.
LARGE = 2**20

#: Times that tasks are tried on workers that die.
_ATTEMPTS = 4

#: Arrays on the workers by their id, and references to them; the array itself keeps its id from being reused.
Sent = dict[int, tuple[Any, Any]]


class Parcel:
    """A pickled object without its large arrays, unpacked once in each process."""

    def __init__(self, content: bytes) -> None:
        self.content, self._value, self._unpacking = content, None, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Parcel, (self.content,)

    @classmethod
    def of(cls, shared: Any) -> tuple[Parcel, list[Any]]:
        """Pack an object; return its large arrays beside it."""
        arrays: dict[int, Any] = {}

        def put_aside(value: Any) -> int | None:
            if not isinstance(value, np.ndarray) or value.nbytes < LARGE or value.dtype.hasobject:
                return None
            arrays[id(value)] = value
            return list(arrays).index(id(value))

        file = io.BytesIO()
        pickler = optional("cloudpickle").Pickler(file, protocol=5)
        pickler.persistent_id = put_aside
        pickler.dump(shared)
        return cls(file.getvalue()), list(arrays.values())

    def unpacked(self, arrays: Sequence[Any]) -> Any:
        """The object: the same one for all tasks of a process."""
        with self._unpacking:
            if self._value is None:
                unpickler: Any = pickle.Unpickler(io.BytesIO(self.content))
                # Arrays in a message begin anywhere in memory; numpy would copy them to take rows of them.
                unpickler.persistent_load = lambda i: np.require(arrays[i], requirements=["ALIGNED"])
                self._value = unpickler.load()
            return self._value


def results(
    function: Callable[..., Any],
    shared: Any,
    arguments: Sequence[tuple[Any, ...]],
    n_jobs: int | None,
    sent: Sent,
) -> Iterator[tuple[int, Any]]:
    """Call ``function(shared, *each)`` on the workers; yield the number and the result of each as they end.

    A worker that dies costs time only: its tasks run again, and arrays lost with it are sent again.

    Parameters
    ----------
    sent : dict
        What was sent so far, which is not sent again.
    """
    backend, left = get_active_backend()[0], dict(enumerate(arguments))
    parcel, arrays = Parcel.of(shared)
    can_yield = backend.supports_return_generator
    for attempt in range(_ATTEMPTS):
        if effective_n_jobs(n_jobs) == 1:  # joblib does not use a single worker that is left
            for i, each in left.items():
                yield i, with_one_blas_thread(function, shared, *each)
            return
        try:
            for array in arrays:
                if id(array) not in sent:
                    sent[id(array)] = array, _placed(backend, array)
            where = [_placed(backend, parcel), *(sent[id(array)][1] for array in arrays)]
            pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered" if can_yield else "list")
            for i, result in pool(
                delayed(_run)(function, i, len(where), *where, *each) for i, each in list(left.items())
            ):
                del left[i]
                yield i, result
            return
        except Exception as error:
            if not _is_loss(error):
                raise
            if attempt + 1 == _ATTEMPTS:
                error.add_note("Workers are killed when their memory is full: give them more.")
                raise
            sent.clear()


def _placed(backend: Any, value: Any) -> Any:
    """Reference to a value on all workers."""
    if hasattr(backend, "client"):  # of Dask, which gives a task the value in place of the reference
        return backend.client.scatter(value, broadcast=True, hash=False)
    return optional("ray").put(value)


def _is_loss(error: Exception) -> bool:
    """Return True if a worker was lost with its tasks or rows; all other errors are those of a task."""
    return isinstance(error, CancelledError) or type(error).__module__ == "ray.exceptions"


def _run(function: Callable[..., Any], i: int, n_sent: int, *given: Any) -> tuple[int, Any]:
    """Run a task on a worker."""
    (parcel, *arrays), arguments = given[:n_sent], given[n_sent:]
    if hasattr(parcel, "result"):  # of Dask: its last worker but one has just gone, and joblib works here
        parcel, *arrays = [each.result() for each in (parcel, *arrays)]
    elif not isinstance(parcel, Parcel):
        parcel, *arrays = _from_ray(parcel, *arrays)
    return i, with_one_blas_thread(function, parcel.unpacked(arrays), *arguments)


@lru_cache(maxsize=1)
def _from_ray(*references: Any) -> list[Any]:
    values: list[Any] = optional("ray").get(list(references))
    return values


def is_in_dask_task() -> bool:
    """Return True in a task of Dask, such as a fit of a grid search, from which no work is sent."""
    dask = sys.modules.get("distributed.utils")
    return dask is not None and hasattr(dask.thread_state, "execution_state")


def optional(module: str) -> Any:
    """Import a module of an optional dependency; raise with installation instructions if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Clusters need {module}: pip install 'dichotomies[dask]', or 'dichotomies[ray]'."
        ) from error
