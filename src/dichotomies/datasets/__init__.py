"""Real datasets with many classes."""

from dichotomies.datasets.folder import DATA_DIR_VARIABLE, Dataset, load

__all__ = ["DATA_DIR_VARIABLE", "Dataset", "load"]
