"""Catalogue of savable classes: their names in files, and their conversion to and from plain state.

A class registers itself beside its definition. A file contains only names, and nothing is imported on behalf
of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any, Protocol, TypeVar

from dichotomies.persistence.checks import ModelFileError, declares

C = TypeVar("C", bound=type)


class Registry(Protocol):
    """Classes of one kind by name; their modules are imported on the first call of `names`."""

    def names(self) -> list[str]:
        """Return all names."""

    def get(self, name: str) -> Any:
        """Return the class of a name."""


class Form(Protocol):
    """Conversion of objects of a class to and from state."""

    def state(self, obj: Any) -> dict[str, Any] | None:
        """Return the state by name; None if the object has attributes that this form does not save."""

    def made_of(self, cls: Any, state: dict[str, Any]) -> Any:
        """Create an object from its state."""


class Fields:
    """Form of dataclasses: their fields, without cached properties.

    Parameters
    ----------
    upgrade : callable, optional
        Converts the fields in files of earlier versions to those of today.
    """

    def __init__(self, upgrade: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> None:
        self.upgrade = upgrade

    def state(self, obj: Any) -> dict[str, Any]:
        """Return the fields."""
        return {field.name: getattr(obj, field.name) for field in fields(obj)}

    def made_of(self, cls: Any, state: dict[str, Any]) -> Any:
        """Call the constructor."""
        return cls(**(state if self.upgrade is None else self.upgrade(state)))


class Parts:
    """Form of classes with a method ``saved_parts`` and a class method ``from_saved_parts``."""

    def state(self, obj: Any) -> dict[str, Any]:
        """Call ``saved_parts``."""
        parts: dict[str, Any] = obj.saved_parts()
        return parts

    def made_of(self, cls: Any, state: dict[str, Any]) -> Any:
        """Call ``from_saved_parts``."""
        return cls.from_saved_parts(**state)


class Parameters:
    """Form of unfitted scikit-learn objects: the parameters of their constructor.

    Parameters left at their default are marked, so that a later scikit-learn may have removed them.
    """

    _DEFAULT = "left at default"

    def state(self, obj: Any) -> dict[str, Any] | None:
        """Return the parameters of `obj`; None if there are other attributes."""
        parameters = signature(type(obj)).parameters
        if set(vars(obj)) != set(parameters):
            return None
        kept = {name: getattr(obj, name) for name in parameters}
        default = [name for name in kept if _same(kept[name], parameters[name].default)]
        return kept | {self._DEFAULT: default}

    def made_of(self, cls: Any, state: dict[str, Any]) -> Any:
        """Create a new instance from `state`."""
        forgotten = set(state.pop(self._DEFAULT)) - set(signature(cls).parameters)
        return cls(**{name: value for name, value in _here(state).items() if name not in forgotten})


class Estimator:
    """Form of estimators: parameters, and fitted attributes, whose names end with an underscore.

    Parameters
    ----------
    others : iterable of str
        Names of other attributes to save.
    upgrade : callable, optional
        Converts the parameters and fitted attributes in files of earlier versions to those of today.
    """

    def __init__(
        self,
        others: Iterable[str] = (),
        upgrade: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.others = frozenset(others)
        self.upgrade = upgrade

    def state(self, obj: Any) -> dict[str, Any]:
        """Return parameters and fitted attributes of `obj`."""
        kept = {name: getattr(obj, name) for name in _parameters(type(obj))}
        for name, value in vars(obj).items():
            if name not in kept and not self._is_fitted(type(obj), name):
                raise ModelFileError(
                    f"{type(obj).__name__} has an attribute {name!r}, which files do not keep; a model whose "
                    "parameters and fitted attributes are all that it has can be saved."
                )
            kept[name] = value
        return kept

    def made_of(self, cls: Any, state: dict[str, Any]) -> Any:
        """Create a new instance and set its fitted attributes, both from `state`."""
        names = _parameters(cls)
        state = _here(state if self.upgrade is None else self.upgrade(state))
        obj = cls(**{name: value for name, value in state.items() if name in names})
        for name, value in state.items():
            if name not in names:
                if not self._is_fitted(cls, name):
                    raise ModelFileError(f"{cls.__name__} has no fitted attribute {name!r}")
                setattr(obj, name, value)
        return obj

    def _is_fitted(self, cls: type, name: str) -> bool:
        """Return True for names of fitted attributes, not of methods or private attributes."""
        public = name.endswith("_") and not name.startswith("_") and not hasattr(cls, name)
        return public or name in self.others


class NameOnly:
    """Form of parameters in files of earlier versions whose class is gone: they are read as its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def state(self, obj: Any) -> None:
        """Return None: there are no objects of the class."""

    def made_of(self, cls: Any, state: dict[str, Any]) -> str:  # noqa: ARG002 - as of every form
        """Return the name."""
        return self.name


def _here(state: dict[str, Any]) -> dict[str, Any]:
    """State without `n_jobs`, which suits the machine that wrote the file."""
    return state | {"n_jobs": None} if "n_jobs" in state else state


def _same(value: Any, default: Any) -> bool:
    """Return True if a parameter equals its default."""
    simple = type(value) in (bool, int, float, str)
    return value is default or (simple and type(value) is type(default) and value == default)


def _parameters(cls: type) -> list[str]:
    return [] if cls.__init__ is object.__init__ else list(signature(cls).parameters)  # type: ignore[misc]


class Catalogue:
    """Savable classes by their name in files."""

    def __init__(self) -> None:
        self._forms: dict[str, tuple[type, Form]] = {}
        self._names: dict[type, str] = {}
        self._families: dict[str, tuple[Registry, Form]] = {}
        self._others: list[Registry] = []
        self._retired: dict[str, tuple[type, Form]] = {}

    def add(self, name: str, cls: type, form: Form) -> None:
        """Register a savable class."""
        if name in self._forms:
            raise ValueError(f"There already is a savable class named {name!r}.")
        self._forms[name], self._names[cls] = (cls, form), name

    def add_family(self, prefix: str, registry: Registry, form: Form) -> None:
        """Register all classes of a registry as ``prefix/name``."""
        self._families[prefix] = registry, form

    def retire(self, name: str, cls: type, form: Form) -> None:
        """Read objects of earlier versions under a name whose class is gone."""
        self._retired[name] = cls, form

    def search(self, registry: Registry) -> None:
        """Import the modules of this registry before a name counts as unknown: they may register it."""
        self._others.append(registry)

    def name_of(self, cls: type) -> str | None:
        """Return the name of a class, None if it is not registered; a subclass has no name of its own."""
        if cls not in self._names:
            self.names()  # imports the modules that may register it
        if cls in self._names:
            return self._names[cls]
        for prefix, (registry, _) in self._families.items():
            for name in registry.names():
                if registry.get(name) is cls:
                    return f"{prefix}/{name}"
        return None

    def find(self, name: str) -> tuple[type, Form]:
        """Return the class of a name, and its form."""
        if name in self._retired:
            return self._retired[name]
        prefix, slash, short = name.partition("/")
        if slash and prefix in self._families:
            registry, form = self._families[prefix]
            if short in registry.names():
                return registry.get(short), form
        if name not in self._forms:
            self.names()
        if name not in self._forms:
            raise ModelFileError(
                f"it has a part of the kind {name!r}, which this version does not know; if it is a class of "
                "your own, import the module that registers it first"
            )
        return self._forms[name]

    def is_model(self, name: str) -> bool:
        """Return True if objects of this name are complete, and can be saved on their own."""
        return isinstance(self.find(name)[1], Estimator | Parts)

    def names(self) -> list[str]:
        """Return all names."""
        members = [
            f"{prefix}/{name}" for prefix, (known, _) in self._families.items() for name in known.names()
        ]
        for registry in self._others:
            registry.names()
        return sorted([*self._forms, *members])


CATALOGUE = Catalogue()


def savable(name: str, form: Form | None = None, /, **declared: Any) -> Callable[[C], C]:
    """Class decorator: make a class savable under a name that never changes.

    Parameters
    ----------
    name : str
        Name of the class in files.
    form : Form, optional
        Conversion to state; by default that of dataclasses, or ``saved_parts`` if the class has it.
    **declared
        Declarations of attributes, checked before an object is written and after it has been read; see
        `dichotomies.persistence.checks`.
    """

    def add(cls: C) -> C:
        chosen = form or (Parts() if hasattr(cls, "saved_parts") else Fields())
        if isinstance(chosen, Fields) and not is_dataclass(cls):
            raise TypeError(f"{cls.__name__} is no dataclass and has no saved_parts, so give its form.")
        CATALOGUE.add(name, cls, chosen)
        return declares(**declared)(cls)

    return add
