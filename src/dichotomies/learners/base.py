"""What learners share: the rows of every node as slices of one sorted index, and what training gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from dichotomies._common.parallel import Progress, even_batches, run
from dichotomies._common.registry import Registry
from dichotomies.persistence import CATALOGUE
from dichotomies.persistence.checks import Part, Such

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.tree import ClassTree


S = TypeVar("S", bound=np.generic)

#: Sorting a row number takes about as long as looking at this many.
_SORTING_COST = 16


class Scorer(Protocol):
    """Whatever answers with log-odds at the nodes of a tree."""

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node, shape (n_rows, n_nodes), a fresh array."""


class NodeScorer(Scorer, Protocol):
    """Trained nodes of a tree, which can also be asked about few nodes.

    Attributes
    ----------
    is_trained : ndarray of bool of shape (n_nodes,)
        Whether a node had rows on both sides to learn from; otherwise it answers with a constant, the
        smoothed log-odds of its sides (Laplace's rule of succession).
    """

    @property
    def is_trained(self) -> BoolArray: ...  # noqa: D102

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``, shape (n_pairs,)."""


#: The declaration of a scorer that is part of another object; see `dichotomies.persistence.checks`.
SCORER = Part(Such(lambda it: hasattr(it, "log_odds"), "scores rows"), "n_nodes", "n_features")


class OwnPairs(NamedTuple):
    """Every node with each of its own rows, node after node, rows in the order of their leaves.

    Attributes
    ----------
    rows : (n_pairs,)
        Row numbers.
    is_left : (n_pairs,)
        Whether the row belongs to the node's left side.
    offsets : (n_nodes + 1,)
        Where each node's pairs begin, and the end.
    """

    rows: IntArray
    is_left: BoolArray
    offsets: IntArray


class Memo:
    """What tasks with the same rows and weights share, whatever their trees; computed when first needed.

    Examples
    --------
    >>> from dichotomies.learners.base import Memo
    >>> memo = Memo()
    >>> memo.get("bins", lambda: "binned once"), memo.get("bins", lambda: "binned again")
    ('binned once', 'binned once')
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """What is known under a key, or is computed now."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]


@dataclass(frozen=True)
class NodeTask:
    """Everything needed to train nodes of a tree: all of them, or some.

    Sorting the rows by the leaf of their class makes every node's training set one contiguous slice of
    `row_order`, and its left and right side two adjacent slices. Where arrays are said to be by node, it is
    by the nodes to be trained, in their order.

    Attributes
    ----------
    nodes : (n_nodes,) or None
        Ascending numbers of the nodes to be trained; None for all.
    memo : Memo
        Shared by tasks with the same rows and weights.
    """

    tree: ClassTree
    X: Matrix
    codes: IntArray
    sample_weight: FloatArray | None = None
    nodes: IntArray | None = None
    memo: Memo = field(default_factory=Memo, compare=False)

    def of_tree(self, tree: ClassTree, nodes: IntArray | None = None) -> NodeTask:
        """The same rows with another tree, or other nodes of it."""
        return NodeTask(tree, self.X, self.codes, self.sample_weight, nodes, self.memo)

    @property
    def n_nodes(self) -> int:
        """How many nodes are to be trained."""
        return len(self.start)

    @cached_property
    def start(self) -> IntArray:
        """The first leaf of each node."""
        return self.of_nodes(self.tree.start)

    @cached_property
    def split(self) -> IntArray:
        """The first leaf of each node's right side."""
        return self.of_nodes(self.tree.split)

    @cached_property
    def stop(self) -> IntArray:
        """The leaf after the last of each node."""
        return self.of_nodes(self.tree.stop)

    @cached_property
    def depth(self) -> IntArray:
        """The depth of each node."""
        return self.of_nodes(self.tree.depth)

    def of_nodes(self, by_node: npt.NDArray[S]) -> npt.NDArray[S]:
        """Entries of the nodes to be trained, of an array with one for each node of the tree."""
        return by_node if self.nodes is None else by_node[self.nodes]

    @cached_property
    def _leaf_of_row(self) -> IntArray:
        return self.tree.leaf_position[self.codes]

    @cached_property
    def row_order(self) -> IntArray:
        """Row numbers sorted by leaf position; rows of one class stay in their order."""
        by_class = self.memo.get("rows by class", lambda: np.argsort(self.codes, kind="stable"))
        counts = np.bincount(self.codes, minlength=self.tree.n_classes)
        begin, order = np.cumsum(counts) - counts, self.tree.leaf_order
        place = np.repeat(begin[order] - self.leaf_offset[:-1], counts[order]) + np.arange(len(self.codes))
        rows: IntArray = by_class[place]
        return rows

    @cached_property
    def leaf_offset(self) -> IntArray:
        """Where in `row_order` each leaf's rows begin, and the end."""
        counts = np.bincount(self._leaf_of_row, minlength=self.tree.n_classes)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def node_size(self) -> IntArray:
        """Number of rows at each node."""
        return self.leaf_offset[self.stop] - self.leaf_offset[self.start]

    @cached_property
    def left_is_positive(self) -> BoolArray:
        """Whether each node's left side is the positive class of its binary problem.

        That is the side of the highest class code, as scikit-learn would code two classes: with only two,
        the nested dichotomy is the base learner, bit for bit.
        """
        edges = np.stack([self.start, self.split, self.stop], axis=1).ravel()
        highest = np.maximum.reduceat(np.append(self.tree.leaf_order, 0), edges).reshape(-1, 3)
        return highest[:, 0] > highest[:, 1]

    def own_pairs(self) -> OwnPairs:
        """Every node with each of its own rows; as many pairs as rows times their depth."""
        first = self.leaf_offset[self.start]
        offsets = np.concatenate([[0], np.cumsum(self.node_size)])
        place = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], self.node_size)
        is_left = place < np.repeat(self.leaf_offset[self.split], self.node_size)
        return OwnPairs(self.row_order[place], is_left, offsets)

    def subset(self, rows: IntArray) -> NodeTask:
        """The same nodes with some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return NodeTask(self.tree, self.take(rows), self.codes[rows], weight, self.nodes)

    def prepared(self) -> NodeTask:
        """Itself, with the index computed, so that workers need not each do it."""
        _ = self.row_order, self.leaf_offset, self.node_size, self.left_is_positive
        return self

    def rows(self, node: int) -> tuple[IntArray, BoolArray]:
        """The rows of a node, in their original order, and whether each belongs to its left side.

        The original order matters to learners that look at it: one that cross-validates within the
        node would otherwise get folds without some of the classes, because neighbouring rows of the
        sorted index are of one class.
        """
        first, last = self.start[node], self.stop[node]
        if _SORTING_COST * self.node_size[node] > len(self.codes):
            rows = np.flatnonzero((first <= self._leaf_of_row) & (self._leaf_of_row < last))
        else:
            rows = np.sort(self.row_order[self.leaf_offset[first] : self.leaf_offset[last]])
        return rows, self._leaf_of_row[rows] < self.split[node]

    def take(self, rows: IntArray) -> Matrix:
        """The features of some rows, as a copy."""
        return self.X.take(rows, axis=0) if isinstance(self.X, np.ndarray) else self.X[rows]


class Wanted(Flag):
    """What is needed of training on folds."""

    FULL = auto()  #: one model, trained on all rows
    MEMBERS = auto()  #: one model per fold, trained on all other rows
    SCORES = auto()  #: the score of every row at its own nodes by the member that had not seen it


@dataclass(frozen=True)
class CrossFitted:
    """What came of training on folds, as far as it was wanted.

    Attributes
    ----------
    full : NodeScorer or None
        Trained on all rows.
    members : sequence of NodeScorer
        ``members[f]`` has not seen the rows of fold ``f``.
    scores : (n_pairs,) or None
        Log-odds of going left for every pair of ``task.own_pairs()``, by the member that had not seen the
        row; NaN where that member had seen only one side of the node.
    """

    full: NodeScorer | None
    members: Sequence[NodeScorer]
    scores: FloatArray | None


@dataclass(frozen=True)
class Effort:
    """How many workers to use, and whether to report progress on stderr, under which title."""

    n_jobs: int | None = None
    verbose: bool = False
    title: str = ""

    def progress(self, title: str) -> Progress | None:
        """A progress report, if wanted."""
        return Progress(self.title + title) if self.verbose else None


class Unsupported(Exception):  # noqa: N818 - an answer rather than a failure
    """Why a learner cannot train a certain estimator's nodes, in words that follow "because"."""


class Learner(ABC):
    """A way to train all nodes of a tree.

    Every subclass but the one that clones gives what one clone per node would give, only faster.
    """

    #: Whether answers are log-odds, rather than scores of any scale.
    gives_probabilities = True

    #: Whether what a node learns depends on its own rows alone.
    nodes_are_independent = True

    #: Whether it takes microseconds per row and node to train, so that trying out trees costs little.
    is_quick = False

    @classmethod
    @abstractmethod
    def recognise(cls, estimator: Any) -> Self | None:
        """A learner that trains nodes as this estimator would; None if it is of another kind.

        Raises
        ------
        Unsupported
            If the estimator is of the right kind, but has parameters that this learner cannot honour.
        """

    @property
    @abstractmethod
    def description(self) -> str:
        """Which way the nodes are trained, for people."""

    @abstractmethod
    def fit(
        self, task: NodeTask, *, random_state: Any, effort: Effort | None = None, title: str = ""
    ) -> NodeScorer:
        """Train all nodes.

        Parameters
        ----------
        task : NodeTask
            Tree and rows.
        random_state : RandomState
            Whatever is random comes from it; the result does not depend on the number of workers.
        effort : Effort
            Workers and reports.
        title : str
            Put before the progress report.
        """

    def cross_fit(
        self,
        task: NodeTask,
        folds: IntArray,
        wanted: Wanted,
        *,
        random_state: Any,
        effort: Effort | None = None,
    ) -> CrossFitted:
        """Train all nodes once per fold, without its rows, and on all rows, as far as wanted.

        Parameters
        ----------
        folds : (n_rows,)
            The fold of each row.
        """
        n_folds = int(folds.max()) + 1
        members = [
            self.fit(
                task.subset(np.flatnonzero(folds != f)),
                random_state=random_state,
                effort=effort,
                title=f"fold {f + 1} of {n_folds}: ",
            )
            for f in range(n_folds)
        ]
        n_jobs = None if effort is None else effort.n_jobs
        scores = out_of_fold_scores(task, members, folds, n_jobs) if Wanted.SCORES in wanted else None
        full = self.fit(task, random_state=random_state, effort=effort) if Wanted.FULL in wanted else None
        return CrossFitted(full, members if Wanted.MEMBERS in wanted else [], scores)


def out_of_fold_scores(
    task: NodeTask, members: Sequence[NodeScorer], folds: IntArray, n_jobs: int | None = None
) -> FloatArray:
    """`CrossFitted.scores`, by asking the members."""
    pairs = task.own_pairs()
    nodes = np.repeat(np.arange(task.n_nodes), task.node_size)
    scores = np.full(len(nodes), np.nan)

    def score(batch: range) -> None:
        inside = slice(pairs.offsets[batch.start], pairs.offsets[batch.stop])
        fold, trained = folds[pairs.rows[inside]], nodes[inside]
        for f, member in enumerate(members):
            mine = inside.start + np.flatnonzero((fold == f) & member.is_trained[trained])
            if len(mine):
                scores[mine] = member.pair_log_odds(task.X, pairs.rows[mine], nodes[mine])

    run(
        score, [(batch,) for batch in even_batches(task.node_size, n_jobs)], n_jobs=n_jobs, shared_memory=True
    )
    return scores


LEARNERS: Registry[Learner] = Registry("learner", "dichotomies.learners")
CATALOGUE.search(LEARNERS)  # their modules say which scorers a file may hold
