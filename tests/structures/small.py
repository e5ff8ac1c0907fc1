"""Structures with little to do, and data for them."""

import numpy as np

from dichotomies.structures import STRUCTURES

_FEWER = {"n_trees": 3, "n_subsets": 3}


def quickly(name, **params):
    """A structure, with few trials where it tries many splits or trees."""
    accepted = STRUCTURES.create(name).get_params()
    return STRUCTURES.create(name, **{key: _FEWER[key] for key in _FEWER.keys() & accepted}, **params)


def clouds(rng, k, n_rows=5, n_features=6, spread=0.3):
    """Classes around centres of their own, rows shuffled."""
    y = np.repeat(np.arange(k), n_rows)
    X = rng.normal(size=(k, n_features))[y] + spread * rng.normal(size=(len(y), n_features))
    shuffled = rng.permutation(len(y))
    return X[shuffled], y[shuffled]


HARD = ["one row a class", "duplicated centroids", "constant features"]


def hard(kind, k, rng):
    """Classes that little or nothing tells apart, or that have few rows; rows shuffled."""
    y = np.arange(k)
    if kind == "duplicated centroids":
        X, y = np.repeat(np.tile(rng.normal(size=(k // 2 + 1, 3)), (2, 1))[:k], 2, axis=0), np.repeat(y, 2)
    elif kind == "constant features":  # and among the classes some of one row
        y = np.concatenate([y, rng.integers(k, size=k)])
        X = np.full((len(y), 3), 7.0)
    else:
        X = rng.normal(size=(k, 3))
    shuffled = rng.permutation(len(y))
    return X[shuffled], y[shuffled]


def unordered(nested):
    """Nested lists as nested sets: which side is left does not count."""
    return frozenset(map(unordered, nested)) if isinstance(nested, list) else nested


def check_names_do_not_count(grown, k, rng):
    """Trees over the names 0..k-1 as they are, and over the same in another order, are the same tree."""
    names = rng.permutation(k)
    back = np.argsort(names)
    renamed, expected = grown(names), grown(np.arange(k))
    assert unordered(_renamed(renamed.to_nested(), back)) == unordered(expected.to_nested())


def _renamed(nested, name_of):
    return [_renamed(side, name_of) for side in nested] if isinstance(nested, list) else int(name_of[nested])
