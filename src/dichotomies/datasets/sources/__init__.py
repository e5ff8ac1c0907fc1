"""The datasets of the registry, one file per place they come from."""

from dichotomies.datasets.sources.base import DATASETS, RawFile, Source

__all__ = ["DATASETS", "RawFile", "Source"]
