"""Validation of class labels, and their codes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import IntArray, LabelArray

_KINDS = {
    "strings": (str,),
    "bytes": (bytes,),
    "booleans": (bool, np.bool_),
    "numbers": (int, float, np.integer, np.floating),
}


def _kind(label: Any) -> str:
    for name, types in _KINDS.items():
        if isinstance(label, types):
            return name
    raise TypeError(
        f"Class labels must be strings, numbers or booleans, got {label!r} of type {type(label).__name__}."
    )


def as_labels(labels: Sequence[Any] | LabelArray) -> LabelArray:
    """Return labels as an array; raise for mixed kinds, which numpy would silently convert."""
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return labels
    by_kind = {_kind(label): label for label in labels}
    if len(by_kind) > 1:
        (first, one), (second, other) = list(by_kind.items())[:2]
        raise TypeError(
            f"Class labels must be all of one kind, got {first} such as {one!r} "
            f"and {second} such as {other!r}."
        )
    return np.asarray(labels)


def codes_of(leaves: LabelArray, classes: Sequence[Any] | LabelArray | None) -> tuple[LabelArray, IntArray]:
    """Return the classes in the order of their codes, and the code of each leaf.

    Raise unless every class has exactly one leaf; the message names the class.
    """
    names = leaves.tolist()
    label, count = Counter(names).most_common(1)[0] if names else (None, 0)
    if count != 1:
        raise ValueError(f"Class {label!r} is at {count} leaves of the tree." if count else "Empty tree.")
    known = np.unique(leaves) if classes is None else np.asarray(classes).copy()
    code = {name: i for i, name in enumerate(known.tolist())}
    if len(code) != len(known):
        twice = Counter(known.tolist()).most_common(1)[0][0]
        raise ValueError(f"Class {twice!r} is given twice.")
    if missing := set(code) - set(names):
        raise ValueError(f"Class {min(missing, key=repr)!r} is missing from the tree.")
    for name in names:
        if name not in code:
            raise ValueError(
                f"The tree has a leaf {name!r}, which is not among the {len(code)} classes. "
                "ClassTree.restrict() leaves out classes that do not occur."
            )
    return known, np.array([code[name] for name in names], dtype=np.intp)
