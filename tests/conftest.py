"""Fixtures: real data from the data folder or the repository, and small data that ships with scikit-learn.

The repository holds `clinc150` and `omniglot_100`, so tests on these run everywhere; tests on other sets are
skipped where the folder that DICHOTOMIES_DATA names does not have them.
"""

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits, load_iris

from experiments.datasets import load

settings.register_profile("dichotomies", deadline=None)  # the first call of a kernel compiles it
settings.load_profile("dichotomies")


@pytest.fixture(scope="session")
def real_data():
    """Load a dataset of the data folder or the repository, or skip the test with the reason."""

    def load_or_skip(name):
        try:
            return load(name, download=False)
        except FileNotFoundError as reason:
            pytest.skip(str(reason))

    return load_or_skip


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture
def rng():
    return np.random.default_rng(0)
