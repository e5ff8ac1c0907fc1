"""Training the boosted trees of some nodes on binned rows."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.boosting.adaboost import AdaBoosting, boost_ada_nodes
from dichotomies._kernels.boosting.ensembles import CATEGORICAL, Ensembles
from dichotomies._kernels.boosting.gradient import boost_gradient_nodes
from dichotomies._kernels.boosting.held_out import find_held_rows, score_held_out
from dichotomies._kernels.boosting.room import Ranges, Room, allocate_rooms
from dichotomies._kernels.compile import has_compiler, is_small
from dichotomies.learners.boosting.trees import BoostedTrees

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.boosting.gradient import GradientBoosting
    from dichotomies._kernels.boosting.local_rows import Bins
    from dichotomies._kernels.boosting.sparse_rows import SparseBins
    from dichotomies._kernels.boosting.team import Team

#: Weights up to 2 to this power are used as they are.
_USUAL_EXPONENT = 100

#: Seconds between looks at threads that work together, and share of the processors that they need meanwhile.
_LOOK, _ENOUGH = 0.02, 0.75


class HeldOut(NamedTuple):
    """Scores and losses of rows that the models were not trained on.

    Attributes
    ----------
    scores : (n_pairs,)
        Log-odds of the nodes' own rows, node after node; NaN where a row was trained on.
    losses : (n_nodes, n_estimators + 1) or (n_nodes, 0)
        Sum of their losses by the number of trees, if asked for.
    """

    scores: FloatArray
    losses: FloatArray


def train_nodes(
    bins: Bins | SparseBins,
    ranges: Ranges,
    boosting: AdaBoosting | GradientBoosting,
    weight: FloatArray,
    fold: IntArray | None = None,
    left_out: int = -1,
    with_losses: bool = False,
    small: bool = False,
    n_threads: int = 1,
) -> tuple[BoostedTrees, HeldOut]:
    """Train some nodes on binned rows, leaving out a fold, whose rows are scored.

    The trees lack the edges of the bins, see `BoostedTrees.joined`. If `small`, the interpreter runs the
    kernels. Several threads train every node together; only gradient boosting on dense rows may have several.
    """
    weight, fold = _usual(weight), np.zeros(len(weight), dtype=np.intp) if fold is None else fold
    given = bins, weight, fold, left_out, ranges
    out = _allocate(ranges, boosting, bool(bins.is_categorical.any()))
    if n_threads == 1 or not has_compiler() or not _train_together(boosting, given, out, n_threads):
        boost: Any = boost_ada_nodes if isinstance(boosting, AdaBoosting) else boost_gradient_nodes
        boost.when(small)(boosting, *given, *_rooms(bins, ranges, boosting, 1)[0], out)
    n_pairs = int((ranges.end - ranges.begin).sum()) if left_out >= 0 else 0
    width = int(boosting.n_estimators.max(initial=0)) + 1 if with_losses else 0
    held = HeldOut(np.full(n_pairs, np.nan), np.empty((len(ranges.begin), width)))
    if left_out >= 0:
        rows = find_held_rows(fold == left_out, ranges, out, len(bins.is_categorical))
        score_held_out.when(small)(bins, weight, rows, ranges, out, *held)
    return _packed(out), held


def is_quick(n_rows: IntArray, n_features: int, boosting: AdaBoosting | GradientBoosting) -> bool:
    """Test whether nodes with these numbers of rows are trained in a moment by the interpreter."""
    of_split = 4e-5 * (n_features + 1)
    seconds = boosting.n_estimators * (3e-6 * n_rows + of_split * np.minimum(boosting.max_leaves, n_rows))
    return is_small(int(n_rows.max(initial=0)), float(seconds.sum()))


def _packed(out: Ensembles) -> BoostedTrees:
    """Copy what was written."""
    n_trees = int(out.n_trees.sum())
    split_offsets = np.concatenate([[0], np.cumsum(out.n_splits[:n_trees])])
    s = int(split_offsets[-1])
    kind = out.kind[:s].copy()
    sets = out.bits[:s][kind == CATEGORICAL] if len(out.bits) else out.bits
    return BoostedTrees(
        features=np.empty(0, dtype=np.intp),
        edges=np.empty(0),
        edge_offsets=np.zeros(1, dtype=np.intp),
        is_categorical=np.empty(0, dtype=np.bool_),
        column=out.feature[:s].copy(),
        leaf=out.leaf[:s].copy(),
        limit=out.limit[:s].copy(),
        kind=kind,
        categories=sets.astype("<u8").view(np.uint8).reshape(-1, 32),
        split_offsets=split_offsets,
        value=out.value[: s + n_trees].copy(),
        tree_offsets=np.concatenate([[0], np.cumsum(out.n_trees)]),
        base=out.base,
        scale=out.scale,
        is_trained=out.is_trained,
    )


def _allocate(ranges: Ranges, boosting: AdaBoosting | GradientBoosting, has_categories: bool) -> Ensembles:
    """Allocate arrays for the maximum number of trees and splits."""
    n_nodes, most_trees = len(ranges.begin), boosting.n_estimators
    most_splits = np.minimum(boosting.max_leaves, np.maximum(ranges.end - ranges.begin, 1)) - 1
    n_trees, n_splits = int(most_trees.sum()), int((most_trees * most_splits).sum())
    return Ensembles(
        n_trees=np.zeros(n_nodes, dtype=np.intp),
        is_trained=np.zeros(n_nodes, dtype=np.bool_),
        base=np.zeros(n_nodes),
        scale=np.ones(n_nodes),
        n_splits=np.empty(n_trees, dtype=np.intp),
        leaf=np.empty(n_splits, dtype=np.uint8),
        feature=np.empty(n_splits, dtype=np.int32),
        limit=np.empty(n_splits, dtype=np.uint8),
        kind=np.empty(n_splits, dtype=np.uint8),
        bits=np.empty((n_splits if has_categories else 0, 4), dtype=np.uint64),
        value=np.empty(n_splits + n_trees),
    )


def _train_together(boosting: Any, given: tuple[Any, ...], out: Ensembles, n_threads: int) -> bool:
    """Train every node by several threads; return False if that was given up.

    It is if, for as long again as they had run before, the threads have had too little of the processors:
    other programs are running, and waiting for one another may take many times as long as training by one.
    """
    bins, *_, ranges = given
    rooms = _rooms(bins, ranges, boosting, n_threads)
    outs = [out, *(Ensembles._make(map(np.empty_like, out)) for _ in rooms[1:])]  # all write the same
    # compiled or loaded here, for no nodes: a thread that failed now would be waited for
    boost_gradient_nodes(boosting, *given[:-1], ranges.take(slice(0, 0)), *rooms[0], out)  # type: ignore[call-arg]
    calls = [
        boost_gradient_nodes.ready(boosting, *given, *room, own)
        for room, own in zip(rooms, outs, strict=True)
    ]
    team, all_started = rooms[0].search.team, Future[bool]()
    running: list[Future[None]] = []

    def train(call: Callable[[], None]) -> None:
        if all_started.result():  # otherwise none of them begins
            call()

    with ThreadPoolExecutor(n_threads) as pool:
        try:
            running.extend(pool.submit(train, call) for call in calls)
        finally:
            all_started.set_result(len(running) == n_threads)
        try:
            _dissolve_if_idle(team, running)
        except BaseException:
            team.dissolve()
            raise
        for each in running:
            each.result()
    return not team.has_left


def _dissolve_if_idle(team: Team, running: Sequence[Future[None]]) -> None:
    """Wait for the threads of a team, and dissolve it if they have too little of the processors."""
    begun = time.perf_counter()
    while True:
        looked, used = time.perf_counter(), time.process_time()
        if not wait(running, timeout=max(_LOOK, looked - begun)).not_done:
            return
        if time.process_time() - used < _ENOUGH * len(running) * (time.perf_counter() - looked):
            team.dissolve()


def _rooms(
    bins: Bins | SparseBins, ranges: Ranges, boosting: AdaBoosting | GradientBoosting, n_threads: int
) -> list[Room]:
    """Allocate memory for the largest node."""
    n_channels = 2 if isinstance(boosting, AdaBoosting) else 1
    return allocate_rooms(
        n_threads,
        bins,
        n_rows=int((ranges.end - ranges.begin).max(initial=1)),
        max_leaves=int(boosting.max_leaves.max(initial=1)),
        max_depth=int(boosting.max_depth.max(initial=1)),
        n_channels=n_channels + (1 if boosting.min_rows.max(initial=1) > 1 else 0),
    )


def _usual(weight: FloatArray) -> FloatArray:
    """Scale weights by a power of two if the largest is extreme, so that no sum overflows."""
    _, exponent = np.frexp(weight.max(initial=0.0))
    return weight if abs(exponent) <= _USUAL_EXPONENT else np.ldexp(weight, -exponent)
