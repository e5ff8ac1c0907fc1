"""What can be wrong with a model file, and what is missing to read or write one."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class ModelFileError(ValueError):
    """A file is not a model that can be loaded, or a model has parts that no file can hold."""


class InconsistentModelError(ModelFileError):
    """The parts of a model do not fit together."""


class MissingExtraError(ImportError):
    """A library is missing that only model files need."""


def extra(module: str) -> Any:
    """A module of the libraries that model files need, or an error that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingExtraError(
            f"Saving and loading models needs {library}: pip install 'dichotomies[save]'."
        ) from error
