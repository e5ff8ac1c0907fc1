"""Labels keep their type and their value, or are refused in a sentence."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from dichotomies import NestedDichotomyClassifier, load

BIG = 2**53 + np.array([0, 1, 2])


def _fitted(labels):
    X, y = load_iris(return_X_y=True)
    taken = labels.take(y) if hasattr(labels, "take") else [labels[i] for i in y]
    return NestedDichotomyClassifier(random_state=0).fit(X, taken)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pd.Series(BIG, dtype="Int64"), BIG),
        (pd.Series(BIG, dtype="UInt64"), BIG.astype(np.uint64)),
        (pd.Series([True, False, True], dtype="boolean"), np.array([False, True])),
        (pd.Series(["a", "b", "c"], dtype="string"), np.array(["a", "b", "c"])),
        (pd.Series(pd.Categorical(["a", "b", "c"])), np.array(["a", "b", "c"])),
        (["a", "b", "c"], np.array(["a", "b", "c"])),
        (np.array([3, np.int32(4), 5], dtype=object), np.array([3, 4, 5])),
        (np.array([1, 2, 3], dtype="m8[D]"), np.array([1, 2, 3], dtype="m8[D]")),
    ],
    ids=["Int64", "UInt64", "boolean", "string", "category", "list", "objects", "timedelta"],
)
def test_labels_keep_their_values(labels, expected, tmp_path):
    clf = _fitted(labels)
    assert clf.classes_.tolist() == expected.tolist()
    assert clf.classes_.dtype.kind in (expected.dtype.kind, "O")
    clf.save(tmp_path / "a.model")
    assert load(tmp_path / "a.model").classes_.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "labels", [pd.Series([None, 1, 2], dtype="Int64"), np.array([None, "a", "b"], dtype=object)]
)
def test_a_missing_label_is_named_by_its_row(labels):
    with pytest.raises(ValueError, match=r"y has no label in row 0 \(counted from 0\)"):
        _fitted(labels)


@pytest.mark.parametrize("labels", [["a", 1, "b"], np.array(["a", 1.5, 2], dtype=object)])
def test_labels_of_several_types_are_refused(labels):
    with pytest.raises(ValueError, match="labels of several types"):
        _fitted(labels)


@pytest.mark.parametrize("structure", ["best-of-k", "2-means", "hierarchy", "random-pair"])
def test_dates_are_labels_for_every_structure(structure):
    X, y = load_iris(return_X_y=True)
    dates = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]")[y]
    clf = NestedDichotomyClassifier(structure=structure, random_state=0).fit(X, dates)
    assert (clf.predict(X) == dates).mean() > 0.9
