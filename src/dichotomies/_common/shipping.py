"""Objects sent to the workers of a cluster: large arrays and rows once each, unpacked once in each process.

What tasks share is pickled, with large arrays and `Rows` put aside. Each of those is placed on the workers
once per `shipment`, such as a fit, and all tasks of a process get the same object, with what they have
computed on it.
"""

from __future__ import annotations

import io
import pickle
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Bytes from which an array is placed on the workers by itself.
LARGE = 2**20

#: Shipments whose objects a worker keeps unpacked.
_KEPT_SHIPMENTS = 2


class Carrier(Protocol):
    """Places values on the workers of a cluster."""

    def place(self, value: Any) -> Any:
        """Put a value on the workers; return the reference that tasks take in its place."""

    def forget(self, shipped: Shipment) -> None:
        """Free what was placed."""


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
    is_kept : bool
        Workers keep the object until the shipment ends; otherwise, until they get another.
    """

    name: str
    content: bytes = field(compare=False)
    arrays: tuple[str, ...] = field(compare=False)
    is_kept: bool


class Shipment:
    """Parcels and arrays sent so far, with the references to where they are."""

    def __init__(self) -> None:
        self.name = uuid4().hex
        self.carrier: Carrier | None = None
        self._parcels: dict[int, tuple[Any, Parcel]] = {}  # with the object, so that its id stays its own
        self._arrays: dict[int, tuple[Any, str]] = {}
        self._values: dict[str, Any] = {}
        self.references: dict[str, Any] = {}

    def parcel(self, value: Any) -> Parcel:
        """Pack an object, or return the parcel in which it was packed before."""
        if id(value) not in self._parcels:
            content, arrays = self._packed(value)
            name = f"{self.name}-{len(self._parcels)}"
            parcel = Parcel(name, content, arrays, _is_shipped_once(value))
            self._parcels[id(value)] = value, parcel
            self._values[parcel.name] = parcel
        return self._parcels[id(value)][1]

    def _packed(self, whole: Any) -> tuple[bytes, tuple[str, ...]]:
        """Pickle of an object without large arrays and what is shipped once; names of the arrays."""
        arrays: dict[str, None] = {}  # in their order

        def put_aside(value: Any) -> str | Parcel | None:
            if isinstance(value, np.ndarray) and value.nbytes >= LARGE and not value.dtype.hasobject:
                name = self._name(value)
                arrays[name] = None
                return name
            if _is_shipped_once(value) and value is not whole:
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

    def reference(self, carrier: Carrier, name: str) -> Any:
        """Reference to a parcel or array on the workers, where it is placed at the first call."""
        self.carrier = carrier
        if name not in self.references:
            self.references[name] = carrier.place(self._values[name])
        return self.references[name]


def _is_shipped_once(value: Any) -> bool:
    return getattr(type(value), "is_shipped_once", False)


_SHIPMENT: ContextVar[Shipment | None] = ContextVar("shipment", default=None)


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
        if shipped.carrier is not None:
            shipped.carrier.forget(shipped)


class _Unpacker(pickle.Unpickler):
    def __init__(self, parcel: Parcel, arrays: Callable[[], dict[str, Any]]) -> None:
        super().__init__(io.BytesIO(parcel.content))
        self._arrays = arrays

    def persistent_load(self, pid: str | Parcel) -> Any:
        if isinstance(pid, Parcel):
            return unpacked(pid, self._arrays)
        # What came in a message may begin anywhere in memory; numpy copies all of it whenever rows are taken.
        return np.require(self._arrays()[pid], requirements=["ALIGNED"])


#: Parcels and their objects, by shipment: what a worker has unpacked.
_UNPACKED: dict[str, dict[Parcel, Any]] = {}
_UNPACKING = threading.RLock()


def unpacked(parcel: Parcel, arrays: Callable[[], dict[str, Any]]) -> Any:
    """Object of a parcel: the same one for all tasks of a process, with what they have computed on it."""
    shipped = parcel.name.partition("-")[0]
    with _UNPACKING:
        known = _UNPACKED.setdefault(shipped, {})
        for old in list(_UNPACKED)[:-_KEPT_SHIPMENTS]:
            del _UNPACKED[old]
        if parcel not in known:
            for other in [each for each in known if not each.is_kept and not parcel.is_kept]:
                del known[other]  # of an earlier tree, say, with its own copy of the rows
            known[parcel] = _Unpacker(parcel, arrays).load()
        return known[parcel]


def drop(shipped: str) -> None:
    """Forget the objects of a shipment, in a worker."""
    with _UNPACKING:
        _UNPACKED.pop(shipped, None)


def optional(module: str) -> Any:
    """Import a module of an optional dependency; raise with installation instructions if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Clusters need {module}: pip install 'dichotomies[dask]', or 'dichotomies[ray]'."
        ) from error
