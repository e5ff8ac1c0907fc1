"""OpenML through scikit-learn: a second source of datasets whose own one cannot be reached."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import fetch_openml

from experiments.datasets.folder import Dataset, cache_folder


def from_openml(name: str, data_id: int) -> Dataset:
    """Fetch a dense dataset by its number at OpenML; scikit-learn keeps it in the cache folder.

    Raises
    ------
    OSError
        If OpenML cannot be reached.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error occurred")  # it comes as an exception, too
        found = fetch_openml(
            data_id=data_id,
            as_frame=False,
            parser="liac-arff",  # the one that needs no pandas
            data_home=str(cache_folder()),
            n_retries=1,
        )
    y = np.asarray(found.target).astype(str)
    whole_numbers = all(label.isdecimal() for label in np.unique(y))
    return Dataset(name, np.asarray(found.data, dtype=np.float32), y.astype(np.int32) if whole_numbers else y)
