"""The public names of the package, as the reference lists them and a test requires them to be documented."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Section:
    """A module of the reference: its name, a title, and the page of the guide that explains it."""

    module: str
    title: str
    page: str

    def names(self) -> list[str]:
        """Public names of the module: those it lists, without those that it only repeats."""
        module = import_module(self.module)
        has_registry = "__dir__" in vars(module) and self.module != "dichotomies"
        listed = dir(module) if has_registry else module.__all__
        return sorted(
            (name for name in listed if not name.startswith("_") and self._is_at_home(name)), key=str.lower
        )

    def _is_at_home(self, name: str) -> bool:
        if self.module != "dichotomies" and name in import_module("dichotomies").__all__:
            return False
        return not inspect.ismodule(self.value(name))

    def value(self, name: str) -> Any:
        """The object of that name."""
        return getattr(import_module(self.module), name)

    def of_kind(self, kind: str) -> list[str]:
        """Names of its classes, functions or constants."""
        return [name for name in self.names() if kind_of(self.value(name)) == kind]


#: Modules in the order of the reference; a class that is registered in one appears without an edit here.
SECTIONS = (
    Section("dichotomies", "Estimators and trees", "user-guide"),
    Section("dichotomies.calibrators.binary", "Binary calibrators", "calibration"),
    Section("dichotomies.calibrators.multiclass", "Multiclass calibrators", "calibration"),
    Section("dichotomies.structures", "Structures of trees", "structures"),
    Section("dichotomies.learners", "Learners of nodes", "learners"),
    Section("dichotomies.metrics", "Metrics", "metrics"),
    Section("dichotomies.diagnostics", "Diagnostics", "diagnostics"),
    Section("dichotomies.plots", "Plots", "diagnostics"),
    Section("dichotomies.report", "Report", "report"),
    Section("dichotomies.persistence", "Model files", "persistence"),
    Section("dichotomies.export", "Other runtimes", "deployment"),
)


def kind_of(value: Any) -> str:
    """Kind of a public object: "class", "function" or "constant"."""
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isroutine(value) else "constant"
