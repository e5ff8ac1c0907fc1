"""Base class of structures: estimator-like objects that grow a `ClassTree` from data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from dichotomies._common.registry import Registry
from dichotomies.persistence import CATALOGUE, Estimator
from dichotomies.structures.class_sums import is_sparse, without_gaps
from dichotomies.tree import ClassTree

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix


class TreeJudge(Protocol):
    """Score of a whole tree: its out-of-fold NLL.

    Attributes
    ----------
    is_quick : bool
        Scoring is fast enough to compare trees by default.
    """

    @property
    def is_quick(self) -> bool: ...

    def __call__(self, tree: ClassTree, *, max_rows: int, seed: int, whole_classes: bool = False) -> float:
        """Mean out-of-fold NLL of the tree on at most about `max_rows` rows; the same for the same seed.

        Rows are sampled from every class in proportion or, with `whole_classes`, all rows of a subset of the
        classes are taken, and the tree is restricted to that subset.
        """


@dataclass(frozen=True)
class GrowingTask:
    """What a structure may look at.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_features), or None
        The features.
    codes : (n_rows,)
        The codes of the rows' classes, positions in `classes`.
    classes : (n_classes,)
        The labels, sorted.
    sample_weight : (n_rows,) or None
        The weights of the rows.
    judge : TreeJudge or None
        How good a tree is with the base learner that will be trained on it; None where there is none.
    """

    X: Matrix
    codes: IntArray
    classes: LabelArray
    sample_weight: FloatArray | None = None
    judge: TreeJudge | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes to arrange."""
        return len(self.classes)

    @cached_property
    def features(self) -> Matrix:
        """The features, gaps filled, for structures that compare the mean features of the classes."""
        if self.X is None:
            raise ValueError(
                "This structure looks at the features, but X is None: give the features, or choose a "
                "structure that only counts rows, such as 'class-balanced' or 'huffman'."
            )
        return without_gaps(self.X)

    @cached_property
    def weight_of_class(self) -> FloatArray:
        """Total weight of the rows of each class."""
        return np.bincount(self.codes, self.sample_weight, self.n_classes).astype(np.float64)

    @cached_property
    def order(self) -> IntArray:
        """The class codes as the rows order them: the heaviest first, of equals the one that occurs first.

        Whatever draws classes or breaks ties between them goes by this order, so that the classes' names
        have no part in it. Rows without weight are as good as absent. Weights that agree to nine digits are
        equal: their sum is rounded differently where a row of weight two is given as two rows.
        """
        n_rows = len(self.codes)
        place = np.arange(n_rows)
        if self.sample_weight is not None:
            place[np.asarray(self.sample_weight) == 0] += n_rows
        first = np.full(self.n_classes, 2 * n_rows)
        np.minimum.at(first, self.codes, place)
        mantissa, exponent = np.frexp(self.weight_of_class)
        return np.lexsort((first, -np.ldexp(np.round(mantissa, 9), exponent)))

    def tree(self, leaf_order: IntArray, split_rank: IntArray) -> ClassTree:
        """Make the tree with these class codes from left to right and these ranks between them."""
        return ClassTree(self.classes[leaf_order], split_rank, self.classes)


class Structure(BaseEstimator, ABC):
    """Base class of structures; subclasses implement `grow_from`.

    Permuting the label names must permute the tree and change nothing else: draw classes and break ties by
    ``task.order``, not by class code.
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
            X = csr_array(X) if is_sparse(X) else np.asarray(X)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        return self.grow_from(GrowingTask(X, codes, classes, sample_weight), check_random_state(random_state))

    @abstractmethod
    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        """Grow a tree whose classes are ``task.classes``."""


STRUCTURES: Registry[Structure] = Registry("structure", __package__ or "")
CATALOGUE.add_family("structure", STRUCTURES, Estimator())


def split_downwards(
    task: GrowingTask,
    split: Callable[[IntArray], tuple[IntArray, IntArray]],
    codes: IntArray | None = None,
) -> ClassTree:
    """Grow a tree by splitting sets of class codes in two until every set is one class.

    `split` maps the codes at a node to those that go left and those that go right. The root holds `codes`,
    by default all of them in ``task.order``.
    """
    leaf_order = (task.order if codes is None else codes).copy()
    split_depth = np.zeros(task.n_classes - 1, dtype=np.intp)
    pending = [(0, task.n_classes, 0)]
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
