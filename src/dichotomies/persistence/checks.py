"""Declarations of the attributes of saved objects, and the routine that checks them.

Kernels are not bounds-checked, so every array from a file is checked before it is used. A class declares its
attributes where it is made savable. A declaration is a class, or a check made by a function of this module,
which is called with the value, its path in the model and the names bound so far. Lengths that must agree
share a name; names are local to an object, and `Part` lists those it shares with its owner.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import numpy as np


class ModelFileError(ValueError):
    """A file is not a model that can be loaded, or a model has parts that cannot be saved."""


class InconsistentModelError(ModelFileError):
    """The parts of a model do not fit together."""


class MissingExtraError(ImportError):
    """A library is missing that only model files need."""


def extra(module: str) -> Any:
    """Import a module of an optional dependency; raise with installation instructions if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingExtraError(
            f"Saving and loading models needs {library}: pip install 'dichotomies[save]'."
        ) from error


Names = dict[str, Any]
Declaration = Callable[[Any, str, Names], None] | type
#: A number, a name, or ``(a, name, b)``: a times the value of the name, plus b.
Length = int | str | tuple[int, str, int]
C = TypeVar("C", bound=type)

_KINDS: dict[str, tuple[type[np.generic], ...]] = {
    "float": (np.float64, np.float32),
    "integer": (np.int64, np.int32),
    "int8": (np.int8,),
    "boolean": (np.bool_,),
    "byte": (np.uint8,),
    "unsigned": (np.uint8, np.uint16, np.uint32),
    "string": (np.str_,),
}
_DECLARED: dict[type, dict[str, Declaration]] = {}
_MISSING = object()


def expect(holds: bool | np.bool_, what: str) -> None:
    """Raise unless this holds; `what` states the condition."""
    if not holds:
        raise InconsistentModelError(f"its parts do not fit together; in a model, {what}")


def declares(**declared: Declaration) -> Callable[[C], C]:
    """Class decorator: declare attributes, in addition to those that the base classes declare."""

    def declare(cls: C) -> C:
        _DECLARED[cls] = declared
        return cls

    return declare


def check(obj: Any, at: str = "", **names: Any) -> Names:
    """Raise unless an object is as its class declares; return the values of all names.

    An unfitted estimator, by its own account or because it lacks the first declared attribute, is not
    checked, and no names are returned. A method ``check_relations`` is called last, with the names, for
    conditions that declarations cannot express.
    """
    bases = reversed(type(obj).__mro__)
    declared = {name: wanted for base in bases for name, wanted in _DECLARED.get(base, {}).items()}
    first = next(iter(declared), "")
    is_fitted = getattr(obj, "__sklearn_is_fitted__", lambda: hasattr(obj, first))
    if not first or not is_fitted():
        return {}
    for name, wanted in declared.items():
        check_value(wanted, getattr(obj, name, _MISSING), f"{at}.{name}".removeprefix("."), names)
    if hasattr(obj, "check_relations"):
        obj.check_relations(names)
    return names


def check_value(wanted: Declaration, value: Any, at: str, names: Names) -> None:
    """Raise unless a value is as declared."""
    if isinstance(wanted, type):
        expect(isinstance(value, wanted), f"{at} is a {wanted.__name__}")
    else:
        wanted(value, at, names)


def Array(
    kind: str, *shape: Length, within: tuple[int, int | str] | None = None, same: str | None = None
) -> Declaration:
    """Declare an array of one kind of numbers (any, with the kind "label") and of a shape.

    Values are `within` bounds, the upper one exclusive; a name must have been bound before. Arrays with the
    same name `same` must be equal.
    """
    lengths = ", ".join("{}*{} + {}".format(*n) if isinstance(n, tuple) else str(n) for n in shape)

    def check_array(value: Any, at: str, names: Names) -> None:
        what = f"{at} is an array of {kind}s of shape ({lengths}), where {_numbers(names)}"
        expect(isinstance(value, np.ndarray) and value.ndim == len(shape), what)
        expect(kind == "label" or (value.dtype.type in _KINDS[kind] and value.dtype.isnative), what)
        expect(all(_is_of_length(*each, names) for each in zip(shape, value.shape, strict=True)), what)
        if within is not None and value.size:
            lowest, end = (names[bound] if isinstance(bound, str) else bound for bound in within)
            expect(lowest <= value.min() and value.max() < end, f"{at} is from {lowest} to {end - 1}")
        expect(same is None or _agrees(same, value, names), f"{at} are the {same} of other parts")

    return check_array


def Offsets(n_ranges: str, end: str) -> Declaration:
    """Declare bounds of consecutive ranges: `n_ranges` + 1 integers, ascending from 0 to `end`."""
    integers = Array("integer", (1, n_ranges, 1))

    def check_offsets(value: Any, at: str, names: Names) -> None:
        check_value(integers, value, at, names)
        rises = value[0] == 0 and (value[1:] >= value[:-1]).all()
        expect(rises and _agrees(end, int(value[-1]), names), f"{at} rise from 0 to {end}")

    return check_offsets


def Size(name: str, least: int = 1) -> Declaration:
    """Declare an integer that binds a name."""

    def check_size(value: Any, at: str, names: Names) -> None:
        is_size = isinstance(value, int | np.integer) and value is not True and value >= least
        expect(is_size and _agrees(name, int(value), names), f"{at} is the {name} of other parts")

    return check_size


def Such(holds: Callable[[Any], bool], what: str) -> Declaration:
    """Declare any value that satisfies a predicate."""
    return lambda value, at, _: expect(value is not _MISSING and holds(value), f"{at} {what}")


def Optional(wanted: Declaration, *, may_be_missing: bool = False) -> Declaration:
    """Declare a value that may be None, or with `may_be_missing` absent."""

    def check_optional(value: Any, at: str, names: Names) -> None:
        if value is not None and not (may_be_missing and value is _MISSING):
            check_value(wanted, value, at, names)

    return check_optional


def Each(wanted: Declaration, length: str | None = None, *, may_be_empty: bool = False) -> Declaration:
    """Declare a list or tuple by its entries; it is not empty, or has the length of a name."""

    def check_each(value: Any, at: str, names: Names) -> None:
        expect(isinstance(value, list | tuple), f"{at} is a list")
        if value or not may_be_empty:
            fits = _agrees(length, len(value), names) if length else len(value) > 0
            expect(fits, f"{at} has {length or 'some'} entries, where {_numbers(names)}")
        for i, entry in enumerate(value):
            check_value(wanted, entry, f"{at}.{i}", names)

    return check_each


def Part(kind: Declaration, *same: str, **others: str | int) -> Declaration:
    """Declare an object that has declarations of its own.

    It shares the names `same` with its owner; `others` map its names to the owner's names, or to values.
    """
    shared: dict[str, str | int] = {**{name: name for name in same}, **others}

    def check_part(value: Any, at: str, names: Names) -> None:
        check_value(kind, value, at, names)
        known = {mine: names.get(str(own), own) for mine, own in shared.items()}
        found = check(value, at, **{mine: each for mine, each in known.items() if not isinstance(each, str)})
        for mine, own in shared.items():
            agrees = mine in found and _agrees(own, found[mine], names)
            expect(agrees, f"{at} agrees with other parts in {mine}, where {_numbers(names)}")

    return check_part


def _agrees(name: int | str, value: Any, names: Names) -> bool:
    """Bind a name to a value, or compare the value with the one it is bound to."""
    known = names.setdefault(name, value) if isinstance(name, str) else name
    return known is value or bool(np.array_equal(known, value))


def _is_of_length(length: Length, size: int, names: Names) -> bool:
    times, name, plus = length if isinstance(length, tuple) else (1, length, 0)
    value, rest = divmod(size - plus, times)
    return rest == 0 and value >= 0 and _agrees(name, value, names)


def _numbers(names: Names) -> str:
    return ", ".join(f"{name} = {value}" for name, value in names.items() if isinstance(value, int))
