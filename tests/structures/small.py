"""Structures with little to do, and data for them."""

import numpy as np

from dichotomies.structures import STRUCTURES

_FEWER = {
    "evolved": {"evaluations": 5, "population": 3},
    "best-of-k": {"n_trees": 3},
    "multiple-subset": {"n_subsets": 3},
}


def quickly(name, **params):
    """A structure, with few trials where it tries many splits or trees."""
    return STRUCTURES.create(name, **_FEWER.get(name, {}), **params)


def clouds(rng, k, n_rows=5, n_features=6, spread=0.3):
    """Classes around centres of their own, rows shuffled."""
    y = np.repeat(np.arange(k), n_rows)
    X = rng.normal(size=(k, n_features))[y] + spread * rng.normal(size=(len(y), n_features))
    shuffled = rng.permutation(len(y))
    return X[shuffled], y[shuffled]


def unordered(nested):
    """Nested lists as nested sets: which side is left does not count."""
    return frozenset(map(unordered, nested)) if isinstance(nested, list) else nested
