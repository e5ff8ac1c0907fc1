"""Registries of classes by name, and suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from inspect import getdoc
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Sentence that suggests the closest name, to be appended to an error message; empty if none is close.

    Examples
    --------
    >>> from dichotomies._common.registry import did_you_mean
    >>> did_you_mean("isotoni", ["platt", "isotonic"]), did_you_mean("x", ["platt"])
    (" Did you mean 'isotonic'?", '')
    """
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


T = TypeVar("T")
C = TypeVar("C", bound=type)


class Registry(Generic[T]):
    """The classes of one kind, by name.

    Parameters
    ----------
    kind : str
        The kind of class, for error messages and listings.
    package : str
        The package whose modules register them: adding a file there is enough to add a name.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._classes: dict[str, Callable[..., T]] = {}
        self._is_complete = False

    def register(self, name: str) -> Callable[[C], C]:
        """Class decorator: make the class available as `name`."""

        def add(cls: C) -> C:
            if name in self._classes:
                raise ValueError(f"There already is a {self.kind} named {name!r}.")
            self._classes[name] = cls
            return cls

        return add

    def names(self) -> list[str]:
        """All names, sorted."""
        if not self._is_complete:
            for module in iter_modules(import_module(self._package).__path__, self._package + "."):
                import_module(module.name)
            self._is_complete = True
        return sorted(self._classes)

    def each(self) -> Iterator[Any]:
        """The classes: those that are imported already, then the others."""
        imported = list(self._classes)
        for name in imported:
            yield self._classes[name]
        for name in self.names():
            if name not in imported:
                yield self._classes[name]

    def create(self, name: str, **params: Any) -> T:
        """Create an instance of the class registered as `name`."""
        made: T = self.get(name)(**params)
        return made

    def get(self, name: str) -> Any:
        """Return the class registered as `name`; raise if there is none."""
        if name not in self._classes and name not in self.names():
            hint = did_you_mean(name, self._classes)
            raise ValueError(f"There is no {self.kind} named {name!r}; choose from {self.names()}.{hint}")
        return self._classes[name]

    def name_of(self, cls: type[Any]) -> str | None:
        """Return the name of a class; None if it is not registered."""
        return next((name for name, each in self._classes.items() if each is cls), None)

    def resolve(self, given: Any, kind: type[Any]) -> T:
        """Turn a name into an instance; return an instance of `kind` unchanged."""
        if isinstance(given, str):
            return self.create(given)
        if isinstance(given, kind):
            instance: T = given
            return instance
        raise TypeError(
            f"Expected a {self.kind}: one of {self.names()} or a {kind.__name__} object, got {given!r}."
        )

    def exports(
        self, public: list[str], beside: Callable[[Any], Iterable[type[Any]]] = lambda _: ()
    ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """Make ``__getattr__`` and ``__dir__`` of the package: `public` and the registered classes.

        The modules are imported when one of their classes is first used. `beside` returns classes that belong
        to a registered one.
        """

        def by_class() -> dict[str, Any]:
            registered = list(map(self.get, self.names()))
            return {cls.__name__: cls for each in registered for cls in (each, *beside(each))}

        def find(name: str) -> Any:
            if name not in by_class():
                raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
            return by_class()[name]

        return find, lambda: sorted({*public, *by_class()})

    def summaries(self) -> dict[str, str]:
        """The first line of each class's docstring, by name."""
        return {name: (getdoc(self._classes[name]) or "").partition("\n")[0] for name in self.names()}
