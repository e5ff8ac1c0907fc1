"""Real datasets with many classes: a registry, loading with downloads, splits and features."""

from dichotomies.datasets.fetching import UnreachableError, fetch
from dichotomies.datasets.folder import (
    CACHE_DIR_VARIABLE,
    DATA_DIR_VARIABLE,
    Dataset,
    cache_folder,
    data_folder,
)
from dichotomies.datasets.loading import Description, available, describe, load
from dichotomies.datasets.partial_file import FetchError
from dichotomies.datasets.prepare import (
    Split,
    cross_validation,
    features,
    has_standard_split,
    project,
    splits,
)
from dichotomies.datasets.sources import DATASETS, RawFile, Source

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
