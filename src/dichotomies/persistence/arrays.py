"""Conversion of arrays of any dtype to tensors of the dtypes that safetensors supports."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.persistence.checks import Array, Offsets, check_value, expect
from dichotomies.persistence.errors import ModelFileError

if TYPE_CHECKING:
    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

#: Dtypes that safetensors supports.
_PLAIN = {np.dtype(name) for name in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")}

#: Kinds of dtypes whose bytes are stored as integers: the integer dtype, and a pattern of the original one.
_VIEWS = {
    "U": ("u4", r"<U[0-9]{1,9}"),
    "S": ("u1", r"\|S[0-9]{1,9}"),
    "M": ("i8", r"<M8(\[.{1,9}\])?"),
    "m": ("i8", r"<m8(\[.{1,9}\])?"),
}

_HIGHEST_CHARACTER = 0x10FFFF


def as_tensors(array: AnyArray) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Convert an array to tensors, keyed by name suffix, and the metadata needed to restore it.

    Fortran order is kept, because the last bits of a matrix product depend on it.
    """
    if array.dtype == object:
        return _texts_as_tensors(array)
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    known: dict[str, Any] = {"order": "F"} if by_columns else {}
    stored = np.asarray(array.T if by_columns else array, dtype=array.dtype.newbyteorder("="), order="C")
    if stored.dtype in _PLAIN:
        return {"": stored}, known
    if stored.dtype.kind in _VIEWS:
        integers = np.frombuffer(stored.tobytes(), _VIEWS[stored.dtype.kind][0])
        width = stored.dtype.itemsize // integers.itemsize
        return {"": integers.reshape(*stored.shape, width)}, known | {"dtype": stored.dtype.str}
    raise ModelFileError(f"Arrays of {array.dtype} cannot be saved.")


def from_tensors(tensors: dict[str, AnyArray], known: dict[str, Any]) -> AnyArray:
    """Restore an array from its tensors and metadata."""
    if "texts" in known:
        return _texts_from_tensors(tensors, known["texts"])
    array = tensors[""]
    if "dtype" in known:
        array = _viewed(array, known["dtype"])
    return array.T if known.get("order") == "F" else array


def _viewed(integers: AnyArray, name: Any) -> AnyArray:
    """View integers as strings, bytes or dates."""
    for kind, pattern in _VIEWS.values():
        if isinstance(name, str) and re.fullmatch(pattern, name):
            dtype = np.dtype(name)
            width = dtype.itemsize // np.dtype(kind).itemsize
            expect(integers.dtype == np.dtype(kind) and integers.shape[-1:] == (width,), f"{name} are {kind}")
            if dtype.kind == "U":
                expect(bool((integers <= _HIGHEST_CHARACTER).all()), "strings are made of characters")
            # a copy, because empty strings have no bytes to view
            return np.frombuffer(bytearray(integers.tobytes()), dtype).reshape(integers.shape[:-1])
    raise ModelFileError(f"it has an array of {name!r}, which no model has")


def _texts_as_tensors(array: AnyArray) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Convert an array of Python strings to concatenated UTF-8 and offsets."""
    if not all(isinstance(text, str) for text in array.flat):
        raise ModelFileError("Of arrays of Python objects only those of strings can be saved.")
    encoded = [text.encode("utf-8", "surrogatepass") for text in array.ravel().tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in encoded])]).astype(np.int64)
    return {"": np.frombuffer(b"".join(encoded), np.uint8), ".offsets": offsets}, {"texts": list(array.shape)}


def _texts_from_tensors(tensors: dict[str, AnyArray], shape: Any) -> AnyArray:
    data, offsets = tensors[""], tensors[".offsets"]
    expect(isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape), "a shape is a list")
    names: dict[str, Any] = {}
    check_value(Array("byte", "n_bytes"), data, "texts", names)
    check_value(Offsets("n_texts", "n_bytes"), offsets, "the offsets of texts", names)
    joined, bounds = data.tobytes(), offsets.tolist()
    texts = np.empty(len(bounds) - 1, dtype=object)
    for i, (begin, end) in enumerate(pairwise(bounds)):
        texts[i] = joined[begin:end].decode("utf-8", "surrogatepass")
    return texts.reshape(shape)
