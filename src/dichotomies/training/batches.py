"""Training on rows that do not fit into memory: passes over batches, and nodes trained some at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.chunks import row_slices
from dichotomies._common.parallel import ONE_BLAS_THREAD
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import JoinedScorer, some_nodes
from dichotomies.learners.base import Block, KeepsStatistics
from dichotomies.rows import NodeTask, Rows
from dichotomies.training.calibration_file import fit_filed, most_rows, with_totals
from dichotomies.training.cross_fitting import CrossFit, wanted_by
from dichotomies.training.external import given
from dichotomies.training.judging import LearnerJudge
from dichotomies.training.train import Trained, grow, train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import IntArray
    from dichotomies.learners import Scorer
    from dichotomies.learners.base import NodePasses
    from dichotomies.rows.spilled import RowCounts, SpilledRows
    from dichotomies.training.plan import Plan
    from dichotomies.tree import ClassTree
    from dichotomies.tree.forest import Forest


#: Bytes of a row for each node that is evaluated on it.
_NODE_BYTES = 32


@dataclass
class Passes:
    """Nodes that were trained on a sample of their rows, and go on to the optimum for all of them.

    As many as have their matrices of second derivatives in half of the memory take their passes together.
    Nodes of learners without passes, and those that are calibrated inside, stay as they are.

    Attributes
    ----------
    held : list of IntArray
        Rows of each class that are held out.
    """

    training: SpilledTraining
    held: Sequence[IntArray]
    _nodes: list[Any] = field(default_factory=list)
    _places: list[int] = field(default_factory=list)
    _sides: list[IntArray] = field(default_factory=list)

    def take(self, task: NodeTask, parts: list[tuple[Scorer, int]], *, is_last: bool) -> None:
        """Add the node of the last part, if it was trained on a sample; replace parts that are finished."""
        scorer: Any = parts[-1][0]
        n_rows = int(self._n_free[np.unique(task.rows.codes)].sum())
        is_sampled = len(task.rows) < n_rows
        if self._way is not None and is_sampled and scorer.is_trained[0]:
            self._nodes.append(self._way.begun(task, n_rows))
            self._places.append(len(parts) - 1)
            self._sides.append(_side_of_class(task))
        if self._nodes and (is_last or not is_sampled or len(self._nodes) >= self._most_nodes):
            self._run(parts)

    @cached_property
    def _way(self) -> NodePasses | None:
        plan = self.training.node_plan
        return None if plan.uses_folds else plan.learner.passes(is_sparse=self.training.counts.is_sparse)

    @cached_property
    def _n_free(self) -> IntArray:
        """Rows of each class that nodes are trained on."""
        n_free: IntArray = self.training.counts.size - np.array([len(each) for each in self.held])
        return n_free

    @cached_property
    def _most_nodes(self) -> int:
        matrices = 2 * 8 * (self.training.counts.n_features + 1) ** 2
        return max(1, self.training.max_memory // (2 * matrices))

    def _run(self, parts: list[tuple[Scorer, int]]) -> None:
        assert self._way is not None
        sampled = [parts[place][0] for place in self._places]
        with ONE_BLAS_THREAD:  # the last bits of a product depend on their number
            finished = self._way.finished(self._nodes, sampled, self._blocks)
        for place, scorer in zip(self._places, finished, strict=True):
            parts[place] = scorer, 1
        self._nodes, self._places, self._sides = [], [], []

    def _blocks(self, active: Sequence[int]) -> Iterator[Block]:
        """Rows of the classes of some nodes, as many at a time as fit into memory."""
        side = np.stack([self._sides[k] for k in active])
        for code in np.flatnonzero(side.any(axis=0)).tolist():
            mine = np.flatnonzero(side[:, code])
            nodes, is_left = np.array(active)[mine], side[mine, code] > 0
            free = self.training.free(code, self.held)
            for part in row_slices(len(free), self.training.most_with(_NODE_BYTES * len(mine))):
                rows = self.training.spilled.rows(np.array([code]), [free[part]])
                weight = np.ones(len(rows)) if rows.weight is None else rows.weight
                yield Block(np.asarray(rows.X), weight, nodes, is_left)


def _side_of_class(task: NodeTask) -> IntArray:
    """1 for the classes on the left of the one node of a task, -1 on its right, 0 for all others."""
    [start], [split], [stop] = task.start, task.split, task.stop
    side = np.zeros(task.rows.n_classes, dtype=np.intp)
    side[task.tree.leaf_order[start:split]], side[task.tree.leaf_order[split:stop]] = 1, -1
    return side


#: Bytes of memory per byte of the rows that are trained on at a time, for the copies that learners make.
_COPIES = 8
#: Bytes of a row beside its features, for its number, class, weight and fold.
_ROW_BYTES = 16
#: Share of the rows that external calibrators are fitted to, and that nodes are not trained on.
_HELD_OUT = 0.1
#: Rows a class must have for some of them to be held out.
_FEWEST_ROWS = 4


def planned(plan: Plan) -> Plan:
    """The plan with what can be done with rows out of memory.

    Internal calibration that is still to be chosen is none, or Platt scaling of scores without probabilities:
    comparing calibrators takes scores of all nodes on the same folds, which only naive Bayes has here.
    """
    if isinstance(plan.internal_calibration, Auto) and not isinstance(plan.learner, KeepsStatistics):
        inside = None if plan.learner.gives_probabilities else BINARY.create("platt")
        plan = replace(plan, internal_calibration=inside)
    if not isinstance(plan.cv, int):
        plan = replace(plan, cv=3)
    if plan.keep_rows and not isinstance(plan.learner, KeepsStatistics):
        raise ValueError("fit_batches keeps rows of naive Bayes only; leave keep_rows at 0.")
    return plan


def rows_in_memory(max_memory: int, rows: Rows) -> int:
    """Number of rows like those of a batch that may be held, with copies of them and of their scores."""
    X = rows.X
    n_bytes = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    return _rows_within(max_memory, n_bytes / len(rows) + 4 * rows.n_classes)


def _rows_within(max_memory: int, row_bytes: float) -> int:
    return max(1_000, int(max_memory / (_COPIES * max(1.0, row_bytes))))


@dataclass(frozen=True, eq=False)
class SpilledTraining:
    """Training on spilled rows.

    Attributes
    ----------
    max_memory : int
        Bytes for rows and copies of them.
    """

    plan: Plan
    spilled: SpilledRows
    max_memory: int
    context: Context

    @cached_property
    def most(self) -> int:
        """Number of rows that are trained on at a time."""
        return self.most_with(_ROW_BYTES)

    def most_with(self, n_bytes: int) -> int:
        """Number of rows that may be held with so many bytes beside the features of each."""
        return _rows_within(self.max_memory, self.counts.row_bytes + n_bytes)

    @cached_property
    def most_values(self) -> int:
        """Number of rows whose values, eight bytes each, and class probabilities may be held at a time."""
        n_values = max(1.0, self.counts.n_values.sum() / max(1, self.counts.size.sum()))
        row_bytes = 12 * n_values if self.counts.is_sparse else 8 * self.counts.n_features
        return min(self.most, _rows_within(self.max_memory, row_bytes + len(self.counts.classes)))

    @property
    def is_small(self) -> bool:
        """True if all rows can be trained on at a time."""
        return bool(self.counts.size.sum() <= self.most_values)

    def _everything(self) -> tuple[IntArray, list[IntArray]]:
        """Classes, and the numbers of their rows."""
        return np.arange(len(self.counts.size)), [np.arange(n) for n in self.counts.size]

    @property
    def counts(self) -> RowCounts:
        """Classes and their rows."""
        return self.spilled.counts

    def run(self) -> Trained:
        """Grow the trees, train the nodes, and calibrate on rows that were held out."""
        plan = self.plan
        held = self._held_out()
        forest = self._grown(held)
        if self.is_small:
            return train(plan, forest, self.spilled.rows(*self._everything()), self.context)
        parts: list[tuple[Scorer, int]] = []
        places: list[IntArray] = []
        passes = Passes(self, held)
        tasks = [task for t in range(len(forest.trees)) for task in self._tasks(forest, t)]
        for i, (tree, place, nodes, codes) in enumerate(tasks):
            rows = self._rows(self.spilled.training_rows, codes, held, self.most)
            titled = self.context.titled(f"part {i + 1} of {len(tasks)}: ", i, len(tasks))
            task = NodeTask(rows, tree, nodes)
            parts.append((self._trained(task, titled), len(nodes)))
            places.append(place[nodes])
            passes.take(task, parts, is_last=i + 1 == len(tasks))
            rows.memo.clear()  # it may refer to the rows, which would stay until cycles are collected
        joined = JoinedScorer([part for part, _ in parts], [size for _, size in parts])
        scorer = some_nodes(joined, np.argsort(np.concatenate(places), kind="stable"))
        model = FittedForest(forest, scorer, plan.pooling)
        if not plan.calibrates_outside:
            return Trained(model, given(plan))
        return Trained(*fit_filed(plan, model, given(plan), self._parts(held), self.spilled.folder))

    def _parts(self, held: Sequence[IntArray]) -> Iterator[Rows]:
        """Rows held out, as many at a time as fit into memory."""
        code, place = np.repeat(np.arange(len(held)), [len(each) for each in held]), np.concatenate(held)
        for rows in row_slices(len(code), self.most_values):
            codes, first = np.unique(code[rows], return_index=True)
            yield self.spilled.rows(codes, np.split(place[rows], first[1:]))

    def _held_out(self) -> list[IntArray]:
        """Rows of each class to calibrate on; none of a class with few."""
        size = self.counts.size
        if self.is_small or not self.plan.calibrates_outside:
            return [np.empty(0, dtype=np.intp)] * len(size)
        most = most_rows(self.plan, self.max_memory, len(size))
        share = min(_HELD_OUT, most / max(1, size.sum()))
        taken = np.where(size >= _FEWEST_ROWS, np.ceil(share * size), 0).astype(np.intp)
        return [_drawn(n, m, self.context.rng) for n, m in zip(size.tolist(), taken.tolist(), strict=True)]

    def free(self, code: int, held: Sequence[IntArray]) -> IntArray:
        """Numbers of the rows of a class that are not held out."""
        return np.delete(np.arange(self.counts.size[code]), held[code])

    def _rows(self, read: Callable[..., Rows], codes: IntArray, held: Sequence[IntArray], most: int) -> Rows:
        """Rows of some classes, without those held out; a stratified sample if they are too many."""
        size = np.array([self.counts.size[code] - len(held[code]) for code in codes])
        share = min(1.0, most / max(1, size.sum()))
        places = []
        for code, n in zip(codes.tolist(), size.tolist(), strict=True):
            free = self.free(code, held)
            places.append(free if share == 1 else free[_drawn(n, max(1, round(share * n)), self.context.rng)])
        rows = read(codes, places)
        if share == 1.0 or not self.plan.learner.takes_weight:
            return rows
        factor = np.ones(rows.n_classes)
        factor[codes] = size / np.array([len(each) for each in places])
        own = np.ones(len(rows)) if rows.weight is None else rows.weight
        return replace(rows, weight=own * factor[rows.codes])

    def _grown(self, held: Sequence[IntArray]) -> Forest:
        """Grow the trees on a sample of the rows, with the exact sums of the classes."""
        sample = self._rows(self.spilled.rows, np.arange(len(held)), held, self.most_values)
        rows = with_totals(sample, self.counts)
        return grow(self.plan, rows, LearnerJudge(self.plan, rows, self.context), self.context.rng)

    def _tasks(self, forest: Forest, t: int) -> Iterator[tuple[ClassTree, IntArray, IntArray, IntArray]]:
        """Nodes of a tree to train together, with the place of each among all and the classes they need."""
        tree, wanted = forest.trees[t], forest.new_nodes(t)
        rows = np.concatenate([[0], np.cumsum(self.counts.size[tree.leaf_order])])
        size = rows[tree.stop] - rows[tree.start]
        for k in wanted[size[wanted] > self.most]:
            yield tree, forest.place[t], np.array([k]), tree.leaf_order[tree.start[k] : tree.stop[k]]
        is_root = (size <= self.most) & ((tree.parent < 0) | (size[tree.parent] > self.most))
        roots = np.flatnonzero(is_root)
        roots = roots[np.argsort(tree.start[roots])]
        for bundle in _bundles(size[roots], self.most):
            first, last = roots[bundle[0]], roots[bundle[-1]]
            inside = (tree.start >= tree.start[first]) & (tree.stop <= tree.stop[last]) & (size <= self.most)
            nodes = wanted[inside[wanted]]
            if len(nodes):
                leaves = np.concatenate([np.arange(tree.start[k], tree.stop[k]) for k in roots[bundle]])
                yield tree, forest.place[t], nodes, tree.leaf_order[leaves]

    @cached_property
    def node_plan(self) -> Plan:
        """The plan of training nodes, without what comes behind them."""
        return replace(self.plan, external_calibration=None, prediction_sets=0)

    def _trained(self, task: NodeTask, context: Context) -> Scorer:
        plan = self.node_plan
        if not plan.uses_folds:
            return plan.learner.fit(task, context)
        rows = task.rows.in_folds(plan.cv, context.rng)
        task = NodeTask(rows, task.tree, task.nodes)
        return CrossFit.fit(plan, task, wanted_by(plan), context).final_scorer()


def _bundles(sizes: IntArray, most: int) -> Iterator[IntArray]:
    """Consecutive pieces that have at most so many rows together."""
    begin = 0
    for end in range(1, len(sizes) + 1):
        if end == len(sizes) or sizes[begin : end + 1].sum() > most:
            yield np.arange(begin, end)
            begin = end


def _drawn(n: int, m: int, rng: Any) -> IntArray:
    """Ascending numbers of m rows out of n."""
    return np.sort(rng.permutation(n)[:m])
