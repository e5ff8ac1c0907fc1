"""Tasks on workers of joblib's Dask or Ray backend: what they share is sent once, lost work is repeated.

What tasks share is pickled with its large arrays put aside. Each of those goes to the workers once per call,
such as a fit, and all tasks of a process get the same object, with what they have computed on it.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from copy import copy
from functools import lru_cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from dichotomies._common.parallel import with_one_blas_thread
from dichotomies._common.validation import is_dask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Method = TypeVar("Method", bound=Callable[..., Any])


def computed(*values: Any) -> tuple[Any, ...]:
    """Return Dask collections as the arrays or data frames that they stand for, other values as they are."""
    if not any(map(is_dask, values)):
        return values
    return tuple(optional("dask").compute(*values))


def by_block(method: Method) -> Method:
    """Let a method that predicts rows take Dask collections, for which it returns a lazy Dask array."""

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        return _blocks(self, method.__name__, X)

    return cast("Method", answer)


def _blocks(estimator: Any, method: str, X: Any) -> Any:
    """Predict a Dask collection lazily, as a Dask array with a block for each block of rows.

    A block is predicted where it lies once it is computed, so that probabilities of all rows are held
    nowhere. The model is sent once per worker.
    """
    da, delayed = optional("dask.array"), optional("dask").delayed
    estimator = copy(estimator).set_params(n_jobs=None)  # Dask has a thread for each block already
    model = delayed(estimator, name=f"{type(estimator).__name__}-{uuid4().hex}", traverse=False)
    of_all_classes = () if method == "predict" else (len(estimator.classes_),)
    dtype = estimator.classes_.dtype if method == "predict" else np.dtype(np.float64)
    if hasattr(X, "rechunk"):  # an array, whose blocks must hold whole rows
        X = X.rechunk({1: -1})
        parts, lengths = X.to_delayed().ravel(), X.chunks[0]
    else:
        parts = X.to_delayed()
        lengths = [np.nan] * len(parts)
    predict = delayed(_predict, pure=False)
    answers = [
        da.from_delayed(predict(model, method, part), (length, *of_all_classes), dtype)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(answers)


def _predict(model: Any, method: str, rows: Any) -> Any:
    if rows.shape[0]:
        return getattr(model, method)(rows)
    shape = (0,) if method == "predict" else (0, len(model.classes_))
    return np.empty(shape, model.classes_.dtype if method == "predict" else np.float64)


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
