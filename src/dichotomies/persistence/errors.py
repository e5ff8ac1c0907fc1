"""Errors of reading and writing model files."""

from __future__ import annotations

from importlib import import_module
from typing import Any


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
