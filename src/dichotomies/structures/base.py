"""Base class of structures, which grow a `ClassTree` from data, and limits on the balance of splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from numbers import Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from dichotomies._common.registry import Registry
from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._common.validation import check_indices
from dichotomies.persistence import CATALOGUE, Estimator, savable
from dichotomies.persistence.catalogue import NameOnly
from dichotomies.rows import Rows
from dichotomies.tree import ClassTree

#: Minimum share of a node's classes on either side for any `balance`; it rules out chains.
_LEAST_SHARE = 0.05


class TreeJudge(Protocol):
    """Score of a whole tree: its out-of-fold NLL.

    Attributes
    ----------
    is_quick : bool
        Scoring is fast enough to compare trees by default.
    """

    @property
    def is_quick(self) -> bool: ...

    def __call__(
        self,
        tree: ClassTree,
        *,
        max_rows: int,
        seed: int,
        whole_classes: bool = False,
        calibrated: bool = False,
    ) -> float:
        """Mean out-of-fold NLL of the tree on at most about `max_rows` rows; the same for the same seed.

        Rows are sampled from every class in proportion or, with `whole_classes`, all rows of a subset of the
        classes are taken, and the tree is restricted to that subset. `calibrated` NLLs are, as far as that is
        cheap, those after the calibration that is planned.
        """


@dataclass(frozen=True, eq=False)
class GrowingTask:
    """Rows to grow a tree on, and a judge of trees.

    Attributes
    ----------
    rows : Rows
        Features (None where only classes are counted), classes and weights.
    judge : TreeJudge or None
        Scores trees with the base learner that will be trained on them; None without a base learner.
    notes : list of str
        Sentences about choices made, for the user; structures add to it.
    """

    rows: Rows
    judge: TreeJudge | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def features(self) -> Matrix:
        """The features with missing values imputed, for structures that compare mean features of classes."""
        if self.rows.base is None:
            raise ValueError(
                "This structure looks at the features, but X is None: give the features, or choose a "
                "structure that only counts rows, such as 'class-balanced' or 'huffman'."
            )
        return self.rows.imputed

    def tree(self, leaf_order: IntArray, split_rank: IntArray) -> ClassTree:
        """Return the tree with codes `leaf_order`, from left to right, and `split_rank` between them."""
        return ClassTree(self.rows.classes[leaf_order], split_rank, self.rows.classes)


class Structure(BaseEstimator, ABC):
    """Base class of structures; subclasses implement `grow_from`.

    Permuting the label names must permute the tree and change nothing else: draw classes and break ties by
    ``task.rows.class_order``, not by class code.
    """

    def grow(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        sample_weight: FloatArray | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> ClassTree:
        """Grow a tree over the labels in `y`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features), or None
            The features; ignored by structures that depend on class frequencies only.
        y : array of shape (n_rows,)
            The label of each row.
        sample_weight : array of shape (n_rows,), optional
            The weight of each row.
        random_state : int, RandomState or None
            Seed; the same seed gives the same tree.

        Returns
        -------
        ClassTree
        """
        if X is not None:
            check_indices(X)
            X = csr_array(X) if bool(issparse(X)) else np.asarray(X)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        task = GrowingTask(Rows(X, codes, classes, weight))
        return self.grow_from(task, check_random_state(random_state))

    @abstractmethod
    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        """Grow a tree over the classes of `task`; `rng`, a `RandomState`, is the only source of chance."""


STRUCTURES: Registry[Structure] = Registry("structure", __package__ or "")
CATALOGUE.add_family("structure", STRUCTURES, Estimator())
for _name in ("evolved", "spectral"):
    CATALOGUE.retire(f"structure/{_name}", str, NameOnly(_name))


def split_downwards(
    task: GrowingTask,
    split: Callable[[IntArray], tuple[IntArray, IntArray]],
    codes: IntArray | None = None,
) -> ClassTree:
    """Grow a tree by splitting sets of class codes in two until every set is one class.

    `split` maps the codes at a node to those that go left and those that go right. The root holds `codes`,
    by default all of them in ``task.rows.class_order``.
    """
    leaf_order = (task.rows.class_order if codes is None else codes).copy()
    split_depth = np.zeros(task.rows.n_classes - 1, dtype=np.intp)
    pending = [(0, task.rows.n_classes, 0)]
    while pending:
        start, stop, depth = pending.pop()
        if stop - start == 1:
            continue
        left, right = split(leaf_order[start:stop])
        middle = start + len(left)
        leaf_order[start:stop] = np.concatenate([left, right])
        split_depth[middle - 1] = depth
        pending += [(middle, stop, depth + 1), (start, middle, depth + 1)]
    return task.tree(leaf_order, split_depth)


def check_balance(balance: Any) -> float:
    """Return `balance` as a float; raise unless it is a number from 0 to 1."""
    if not isinstance(balance, Real) or not 0 <= float(balance) <= 1:
        raise ValueError(
            "balance must be a number from 0 (splits as the classes are clustered, at least a twentieth of "
            f"them on each side) to 1 (halves), got {balance!r}."
        )
    return float(balance)


def least_side(m: int, balance: float) -> int:
    """Return the minimum number of m classes on the smaller side: the share ``balance / 2``, rounded up.

    At least a twentieth and at most half of the classes.

    Examples
    --------
    >>> [least_side(100, balance) for balance in (0.0, 0.5, 1.0)]
    [5, 25, 50]
    """
    share = max(_LEAST_SHARE, balance / 2)
    return min(max(1, ceil(share * m - 1e-9)), m // 2)


def depth_bound(k: int, balance: float) -> int:
    """Return the maximum leaf depth if every split of m classes leaves `least_side` on the smaller side.

    It is at most ``log(k) / -log(1 - s) + 1`` for a minimum share s below one half, and ``ceil(log2(k))``
    for halves.

    Examples
    --------
    >>> [depth_bound(1000, balance) for balance in (0.0, 0.5, 1.0)]
    [87, 21, 10]
    """
    depth = 0
    while k > 1:
        k -= least_side(k, balance)
        depth += 1
    return depth


def split_in_half(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first half of the classes and the rest."""
    middle = len(codes) // 2
    return codes[:middle], codes[middle:]


def split_within_bounds(codes: IntArray, preference: FloatArray, balance: float) -> tuple[IntArray, IntArray]:
    """Split classes by the sign of their preference; the weakest change sides if one side is too small.

    Parameters
    ----------
    codes : (m,)
        The classes to split.
    preference : (m,)
        Positive for left, negative for right; its magnitude is the strength of the preference.
    balance : float
        See `least_side`.

    Returns
    -------
    left, right
        Both in the order given.
    """
    least = least_side(len(codes), balance)
    n_left = int(np.clip(np.count_nonzero(preference > 0), least, len(codes) - least))
    is_left = np.zeros(len(codes), dtype=bool)
    is_left[np.argsort(-preference, kind="stable")[:n_left]] = True
    return codes[is_left], codes[~is_left]


def balanced_boundary(heights: FloatArray, balance: float) -> int:
    """Return where to cut a row of classes: the highest boundary that leaves enough on either side.

    Ties go to the boundary nearest to the middle, so that indistinguishable classes are halved.

    Parameters
    ----------
    heights : (m - 1,)
        Distance between neighbouring classes.

    Returns
    -------
    int
        Number of classes left of the cut.
    """
    return highest_boundary(heights, least_side(len(heights) + 1, balance))


def highest_boundary(heights: FloatArray, least: int) -> int:
    """Return the cut of `balanced_boundary` for at least `least` classes on either side."""
    m = len(heights) + 1
    inside = heights[least - 1 : m - least]
    highest = np.flatnonzero(inside == inside.max()) + least
    return int(highest[np.argmin(np.abs(2 * highest - m))])


@savable("fixed-tree", Estimator())
class FixedTree(Structure):
    """A tree given by the user.

    Parameters
    ----------
    tree : ClassTree or nested lists of labels
        It must have a leaf for every class in the data; leaves of absent classes are removed. If the
        data's labels are encoded as integers, as by scikit-learn's meta-estimators, class i is the i-th
        label of the tree in sorted order.
    """

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        tree = self.tree if isinstance(self.tree, ClassTree) else ClassTree.from_nested(self.tree)
        if task.rows.classes.dtype == tree.classes.dtype and np.array_equal(task.rows.classes, tree.classes):
            return tree
        classes = set(task.rows.classes.tolist())
        if not classes <= set(tree.classes.tolist()) and _are_codes(classes, tree.n_classes):
            tree = ClassTree(tree.leaf_order, tree.split_depth)
        occurring = classes & set(tree.classes.tolist())
        return (tree.restrict(occurring) if occurring else tree).over(task.rows.classes)


def _are_codes(classes: set[Any], n_classes: int) -> bool:
    """Return True if the labels are class codes rather than labels of the tree."""
    return all(type(label) is int and 0 <= label < n_classes for label in classes)


def resolve(structure: Any) -> Structure:
    """Turn `structure`, a name, an object, a `ClassTree` or nested labels, into a structure."""
    if isinstance(structure, ClassTree | list | tuple):
        return FixedTree(structure)
    return STRUCTURES.resolve(structure, Structure)
