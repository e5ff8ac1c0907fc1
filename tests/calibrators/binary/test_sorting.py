"""Segments are sorted as numpy sorts them, ties in their order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dichotomies.calibrators.binary import Segments


def expected(segments):
    bounds = zip(segments.offsets[:-1], segments.offsets[1:], strict=True)
    return np.concatenate([[], *(a + np.argsort(segments.scores[a:b], kind="stable") for a, b in bounds)])


def order_of(scores, sizes):
    segments = Segments(scores, np.zeros(len(scores), dtype=bool), np.cumsum([0, *sizes]))
    return segments.order, expected(segments)


@given(
    scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=120), cut=st.integers(0, 120)
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_scores(scores, cut):
    cut = min(cut, len(scores))
    assert np.array_equal(*order_of(np.array(scores, dtype=float), [cut, 0, len(scores) - cut]))


@pytest.mark.parametrize("n", [31, 32, 33, 5_000])
@pytest.mark.parametrize(
    "kind", ["normal", "tied", "constant", "outlier", "sorted", "reversed", "cauchy", "subnormal"]
)
def test_scores_of_every_distribution(kind, n, rng):
    scores = {
        "normal": rng.normal(size=n),
        "tied": rng.integers(0, 10, size=n).astype(float),
        "constant": np.full(n, 0.3),
        "outlier": np.r_[1e300, rng.normal(size=n - 1)],
        "sorted": np.arange(n) / 7,
        "reversed": -np.arange(n) / 7,
        "cauchy": rng.standard_cauchy(size=n),
        "subnormal": rng.integers(0, 3, size=n) * 5e-324,
    }[kind]
    assert np.array_equal(*order_of(scores, [n]))
