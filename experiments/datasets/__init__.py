"""Real datasets with many classes: a registry, loading with downloads, splits and features."""

from experiments.datasets.fetching import UnreachableError, fetch
from experiments.datasets.folder import (
    CACHE_DIR_VARIABLE,
    DATA_DIR_VARIABLE,
    Dataset,
    cache_folder,
    data_folder,
)
from experiments.datasets.loading import Description, available, describe, load
from experiments.datasets.partial_file import FetchError
from experiments.datasets.prepare import (
    Split,
    cross_validation,
    features,
    has_standard_split,
    project,
    splits,
)
from experiments.datasets.sources import DATASETS, RawFile, Source

__all__ = [
    "CACHE_DIR_VARIABLE",
    "DATASETS",
    "DATA_DIR_VARIABLE",
    "Dataset",
    "Description",
    "FetchError",
    "RawFile",
    "Source",
    "Split",
    "UnreachableError",
    "available",
    "cache_folder",
    "cross_validation",
    "data_folder",
    "describe",
    "features",
    "fetch",
    "has_standard_split",
    "load",
    "project",
    "splits",
]
