"""What is declared of an object is what is accepted."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from dichotomies.persistence.checks import (
    Array,
    Each,
    InconsistentModelError,
    Offsets,
    Optional,
    Part,
    Size,
    check,
    declares,
)


@declares(
    n_rows=Size("n_rows"),
    offsets=Offsets("n_rows", "n_entries"),
    column=Array("integer", "n_entries", within=(0, "n_columns")),
    pairs=Array("float", (2, "n_rows", 1)),
)
@dataclass(frozen=True)
class Inner:
    n_rows: int
    offsets: np.ndarray
    column: np.ndarray
    pairs: np.ndarray


@declares(
    labels=Array("label", "n_labels", same="labels"),
    inner=Part(Inner, "n_rows", n_columns="n_labels"),
    others=Each(Part(Inner, "n_rows", n_columns=9), "n_others", may_be_empty=True),
    again=Optional(Array("label", "n_labels", same="labels")),
)
@dataclass(frozen=True)
class Outer:
    labels: np.ndarray
    inner: object
    others: object
    again: object = None


INNER = Inner(2, np.array([0, 1, 3]), np.array([2, 0, 1]), np.zeros(5))
OUTER = Outer(np.array(["a", "b", "c"]), INNER, [INNER, INNER], np.array(["a", "b", "c"]))


def test_names_are_bound_and_returned():
    found = check(OUTER)
    assert {name: found[name] for name in ("n_labels", "n_rows", "n_others")} == {
        "n_labels": 3,
        "n_rows": 2,
        "n_others": 2,
    }
    check(replace(OUTER, others=(), again=None))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_rows": 3}, r"inner\.offsets is an array of integers of shape \(1\*n_rows \+ 1\)"),
        ({"n_rows": 0}, r"inner\.n_rows is the n_rows"),
        ({"n_rows": True}, r"inner\.n_rows is the n_rows"),
        ({"offsets": np.array([0, 2, 1])}, r"inner\.offsets rise from 0"),
        ({"offsets": np.array([1, 1, 3])}, r"inner\.offsets rise from 0"),
        ({"offsets": np.array([0, 1, 4])}, r"inner\.column is an array .*n_entries = 4"),
        ({"column": np.array([2, 0, 3])}, r"inner\.column is from 0 to 2"),
        ({"column": np.array([2, 0, -1])}, r"inner\.column is from 0 to 2"),
        ({"column": np.array([2.0, 0.0, 1.0])}, r"inner\.column is an array of integers"),
        ({"column": [2, 0, 1]}, r"inner\.column is an array of integers"),
        ({"pairs": np.zeros(4)}, r"inner\.pairs is an array of floats of shape \(2\*n_rows \+ 1\)"),
        ({"pairs": np.zeros(5, dtype=">f8")}, r"inner\.pairs is an array of floats"),
    ],
)
def test_a_part_that_is_not_as_declared_is_named(change, message):
    with pytest.raises(InconsistentModelError, match=message):
        check(replace(OUTER, inner=replace(INNER, **change)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array(["a", "b"])}, r"inner\.column is from 0 to 1"),
        ({"inner": None}, "inner is a Inner"),
        ({"inner": SimpleNamespace(**vars(INNER))}, "inner is a Inner"),
        ({"others": None}, "others is a list"),
        ({"others": [INNER, 1]}, r"others\.1 is a Inner"),
        ({"again": np.array(["a", "b", "d"])}, "again are the labels of other parts"),
        ({"again": np.array(["a", "b"])}, "again is an array"),
    ],
)
def test_parts_that_do_not_agree_are_refused(change, message):
    with pytest.raises(InconsistentModelError, match=message):
        check(replace(OUTER, **change))


def test_an_estimator_without_its_first_attribute_is_not_fitted():
    @declares(coef_=Array("float", "n_features"), n_features_in_=Size("n_features"))
    class Estimator:
        n_features_in_ = 4

    @declares(part=Part(Estimator, n_features=4))
    class Owner:
        part = Estimator()

    assert check(Estimator()) == {}
    with pytest.raises(InconsistentModelError, match="part agrees with other parts in n_features"):
        check(Owner())
