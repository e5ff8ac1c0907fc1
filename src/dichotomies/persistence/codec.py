"""Encoding of objects as JSON and tensors, and decoding.

None, booleans, integers, strings, finite floats and lists are themselves in JSON. Anything else is a JSON
object whose first key is its kind: ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``,
``{"float": "nan"}``, ``{"array": name of a tensor}``, ``{"scalar": name of a tensor}``,
``{"random state": [...]}``, ``{"object": name, "parts": {...}}`` for the classes of the catalogue, and
``{"foreign": number}`` for objects that skops serialises.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.persistence import arrays, foreign
from dichotomies.persistence.catalogue import CATALOGUE
from dichotomies.persistence.checks import Array, check, check_value, expect
from dichotomies.persistence.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

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
            self.tensors[_FOREIGN] = foreign.dumped(self._foreign)
        return self.tensors

    def _each(self, values: Sequence[Any], at: str) -> list[Any]:
        return [self.encode(value, f"{at}.{i}") for i, value in enumerate(values)]

    def _array(self, array: AnyArray, at: str) -> Any:
        key = array.__array_interface__["data"][0], array.dtype.str, array.shape, array.strides
        if array.dtype.hasobject or key not in self._known:
            tensors, known = arrays.as_tensors(array)
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
            self._arrays[name] = arrays.from_tensors({end: self._tensor(name + end) for end in ends}, known)
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
            self._foreign = foreign.loaded(data.tobytes(), self._trusted)
        number = given["foreign"]
        expect(type(number) is int and 0 <= number < len(self._foreign), "foreign objects are numbered")
        return self._foreign[number]
