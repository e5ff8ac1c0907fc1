"""Calibrators of probabilities: binary at the nodes, multiclass over the classes."""

from importlib import import_module
from typing import Any

_PACKAGES = ("binary", "multiclass")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    for package in _PACKAGES if not name.startswith("_") else ():
        if name in dir(import_module(f"{__name__}.{package}")):
            return getattr(import_module(f"{__name__}.{package}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names = (name for package in _PACKAGES for name in dir(import_module(f"{__name__}.{package}")))
    return sorted({*_PACKAGES, *names})
