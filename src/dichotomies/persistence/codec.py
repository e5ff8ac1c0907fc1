"""Encoding of objects as JSON and tensors, and decoding.

None, booleans, integers, strings, finite floats and lists are themselves in JSON. Anything else is a JSON
object whose first key is its kind: ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``,
``{"float": "nan"}``, ``{"array": name of a tensor}``, ``{"scalar": name of a tensor}``,
``{"random state": [...]}``, ``{"object": name, "parts": {...}}`` for the classes of the catalogue, and
``{"foreign": number}`` for objects that skops serialises. Arrays of dtypes that safetensors does not know are
stored as integers or UTF-8.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from dichotomies.persistence.catalogue import CATALOGUE, Parameters, savable
from dichotomies.persistence.checks import Array, ModelFileError, Offsets, check, check_value, expect, extra

#: Modules of estimators that predict in native code, which arrays that do not fit together can crash.
_NATIVE = ("sklearn.svm.", "sklearn.tree.", "sklearn.ensemble.", "sklearn.neighbors.")

for _cls in (KFold, StratifiedKFold, FrozenEstimator, Pipeline):
    savable(f"sklearn/{_cls.__name__}", Parameters())(_cls)


def dumped(objects: list[Any]) -> npt.NDArray[np.uint8]:
    """Serialise objects by skops, and verify that it can read them again."""
    skops = extra("skops.io")
    kinds = ", ".join(sorted({type(each).__name__ for each in objects}))
    try:
        data: bytes = skops.dumps(objects)
        skops.loads(data, trusted=skops.get_untrusted_types(data=data))  # skops cannot read functions
    except Exception as error:  # objects may raise anything
        reason = str(error).rstrip(".")
        raise ModelFileError(
            f"The model has parts that skops cannot write and read again, among these: {kinds}. "
            f"{type(error).__name__}: {reason}."
        ) from error
    return np.frombuffer(data, np.uint8)


def loaded(data: bytes, trusted: Sequence[Any] | None) -> list[Any]:
    """Deserialise objects; raise unless all types are trusted by default or by the caller."""
    skops = extra("skops.io")
    types = _types(_schema(data))
    trusted = list(trusted or [])
    known = {each if isinstance(each, str) else f"{each.__module__}.{each.__name__}" for each in trusted}
    untrusted = {*skops.get_untrusted_types(data=data), *(name for name in types if name.startswith(_NATIVE))}
    if unknown := sorted(untrusted - known):
        raise ModelFileError(
            "it has objects of types that are not trusted by default, because loading or using them runs "
            f"code that does not check its input: {', '.join(unknown)}. If you know where the file comes "
            f"from, say so: load(path, trusted={unknown}), on the command line --trust "
            f"{' --trust '.join(unknown)}"
        )
    objects = skops.loads(data, trusted=sorted(known))
    expect(isinstance(objects, list), "skops holds a list")
    made: list[Any] = objects
    for each in made:
        _forget_workers(each)
    return made


def _schema(data: bytes) -> Any:
    """The structure of the objects; raise for archives that would be larger in memory than in the file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        stored = all(each.compress_type == zipfile.ZIP_STORED for each in members)
        expect(stored, "what skops has written is not compressed")
        expect(sum(each.file_size for each in members) <= len(data), "members of an archive do not overlap")
        return json.loads(archive.read("schema.json"))


def _types(schema: Any) -> set[str]:
    """Full names of all types in a schema."""
    pending, found = [schema], set()
    while pending:
        each = pending.pop()
        pending += each.values() if isinstance(each, dict) else each if isinstance(each, list) else []
        if isinstance(each, dict) and "__class__" in each:
            found.add(f"{each.get('__module__')}.{each['__class__']}")
    return found


def _forget_workers(estimator: Any) -> None:
    """Reset `n_jobs`, which suits the machine that wrote the file."""
    names = estimator.get_params() if hasattr(estimator, "get_params") else ()
    workers = {name: None for name in names if name.rpartition("__")[2] == "n_jobs"}
    if workers:
        estimator.set_params(**workers)


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


_FOREIGN = "skops"
_MT_WORDS = 624


class Encoder:
    """Encodes objects and collects their arrays, each stored once even if it occurs several times."""

    def __init__(self) -> None:
        self.tensors: dict[str, AnyArray] = {}
        self._known: dict[Any, dict[str, Any]] = {}
        self._alive: list[AnyArray] = []  # keeps addresses from being reused
        self._foreign: list[Any] = []
        self._names: dict[type, str | None] = {}

    def encode(self, value: Any, at: str = "") -> Any:
        """Encode a value as JSON; `at` is its path in the model, which names its tensors."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return self._each(value, at)
        if type(value) is tuple:
            return {"tuple": self._each(value, at)}
        if type(value) is dict:
            return {"dict": [self._each(item, f"{at}.{i}") for i, item in enumerate(value.items())]}
        if type(value) in (np.ndarray, np.memmap):
            return {"array": self._array(value, at)}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), at)}
        if type(value) is np.random.RandomState:
            return self._random_state(value, at)
        return self._object(value, at)

    def finished(self) -> dict[str, AnyArray]:
        """Return all tensors, including those of foreign objects."""
        if self._foreign:
            self.tensors[_FOREIGN] = dumped(self._foreign)
        return self.tensors

    def _each(self, values: Sequence[Any], at: str) -> list[Any]:
        return [self.encode(value, f"{at}.{i}") for i, value in enumerate(values)]

    def _array(self, array: AnyArray, at: str) -> Any:
        key = array.__array_interface__["data"][0], array.dtype.str, array.shape, array.strides
        if array.dtype.hasobject or key not in self._known:
            tensors, known = as_tensors(array)
            name = at.removeprefix(".") or "array"
            self.tensors |= {name + end: tensor for end, tensor in tensors.items()}
            self._known[key] = {"tensor": name} | known
            self._alive.append(array)
        reference = self._known[key]
        return reference["tensor"] if len(reference) == 1 else reference

    def _random_state(self, value: np.random.RandomState, at: str) -> Any:
        state: Any = value.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            return self._object(value, at)
        words, place = state["state"]["key"], int(state["state"]["pos"])
        gauss = [int(state["has_gauss"]), float(state["gauss"])]
        return {"random state": [self._array(words, at), place, *gauss]}

    def _object(self, value: Any, at: str) -> Any:
        if type(value) not in self._names:
            self._names[type(value)] = CATALOGUE.name_of(type(value))
        name = self._names[type(value)]
        parts = None if name is None else CATALOGUE.find(name)[1].state(value)
        if name is None or parts is None:
            self._foreign.append(value)
            return {"foreign": len(self._foreign) - 1}
        if CATALOGUE.is_model(name):
            check(value)
        return {
            "object": name,
            "parts": {key: self.encode(part, f"{at}.{key}") for key, part in parts.items()},
        }


class Decoder:
    """Decodes objects, of known classes only, and checks them."""

    def __init__(self, tensors: dict[str, AnyArray], trusted: Sequence[Any] | None = None) -> None:
        self._tensors = tensors
        self._arrays: dict[str, AnyArray] = {}
        self._trusted = trusted
        self._foreign: list[Any] | None = None
        self._makers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "tuple": lambda given: tuple(self._each(given["tuple"])),
            "dict": lambda given: dict(self._each(pair) for pair in given["dict"]),
            "float": lambda given: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[given["float"]],
            "array": lambda given: self._array(given["array"]),
            "scalar": self._scalar,
            "random state": self._random_state,
            "object": self._object,
            "foreign": self._one_foreign,
        }

    def decode(self, value: Any) -> Any:
        """Decode a value from JSON."""
        if isinstance(value, list):
            return [self.decode(each) for each in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value), None)
        if kind not in self._makers:
            raise ModelFileError(f"it has a value of the kind {kind!r}, which this version does not know")
        return self._makers[kind](value)

    def _each(self, values: list[Any]) -> list[Any]:
        expect(isinstance(values, list), "what consists of many is a list")
        made: list[Any] = self.decode(values)
        return made

    def _array(self, reference: Any) -> AnyArray:
        known = reference if isinstance(reference, dict) else {"tensor": reference}
        name = known["tensor"]
        if name not in self._arrays:
            ends = ("", ".offsets") if "texts" in known else ("",)
            self._arrays[name] = from_tensors({end: self._tensor(name + end) for end in ends}, known)
        return self._arrays[name]

    def _tensor(self, name: str) -> AnyArray:
        if name not in self._tensors:
            raise ModelFileError(f"it has no tensor {name!r}, which one of its parts refers to")
        return self._tensors[name]

    def _scalar(self, given: dict[str, Any]) -> Any:
        array = self._array(given["scalar"])
        expect(array.ndim == 0, "a scalar has no dimension")
        return array[()]

    def _random_state(self, given: dict[str, Any]) -> np.random.RandomState:
        words, place, has_gauss, gauss = given["random state"]
        key = self._array(words)
        # numpy is not bounds-checked here
        expect(key.dtype == np.uint32 and key.shape == (_MT_WORDS,), "a random state has 624 words")
        expect(type(place) is int and 0 <= place <= _MT_WORDS, "a random state points to one of its words")
        expect(type(has_gauss) is int and type(gauss) is float, "a random state has a normal number or none")
        restored = np.random.RandomState()
        restored.set_state(("MT19937", key, place, has_gauss, gauss))
        return restored

    def _object(self, given: dict[str, Any]) -> Any:
        cls, form = CATALOGUE.find(given["object"])
        made = form.made_of(cls, {key: self.decode(part) for key, part in given["parts"].items()})
        if CATALOGUE.is_model(given["object"]):
            check(made)
        return made

    def _one_foreign(self, given: dict[str, Any]) -> Any:
        if self._foreign is None:
            data = self._tensor(_FOREIGN)
            check_value(Array("byte", "n_bytes"), data, "what skops has written", {})
            self._foreign = loaded(data.tobytes(), self._trusted)
        number = given["foreign"]
        expect(type(number) is int and 0 <= number < len(self._foreign), "foreign objects are numbered")
        return self._foreign[number]
