"""Model files: arrays in safetensors, the rest in versioned JSON; loading runs no code from the file."""

from typing import TYPE_CHECKING, Any

from dichotomies.persistence.catalogue import CATALOGUE, Estimator, Parameters, savable
from dichotomies.persistence.checks import ModelFileError

if TYPE_CHECKING:
    from dichotomies.persistence.save_load import load, save

__all__ = ["CATALOGUE", "Estimator", "ModelFileError", "Parameters", "load", "savable", "save"]


def __getattr__(name: str) -> Any:
    if name not in ("load", "save"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dichotomies.persistence import save_load  # takes long to import, and few programs save

    return getattr(save_load, name)
