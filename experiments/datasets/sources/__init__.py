"""The datasets of the registry, one file per place they come from."""

from experiments.datasets.sources.base import DATASETS, RawFile, Source

__all__ = ["DATASETS", "RawFile", "Source"]
