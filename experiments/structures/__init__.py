"""Structures of the study that are not part of the library: a genetic search, and spectral clustering."""

from experiments.structures.evolved import Evolved
from experiments.structures.spectral import Spectral

__all__ = ["EXPERIMENTAL", "Evolved", "Spectral"]

#: The structures by their name in the study.
EXPERIMENTAL = {"evolved": Evolved, "spectral": Spectral}
