"""`CompiledSearch`: search of one tree row by row in a compiled loop, for linear and Gaussian nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._kernels.best_first import (
    Maps,
    Paths,
    Ranking,
    SearchedTree,
    along_paths,
    best_first,
    empty_heap,
    none_reached,
)
from dichotomies._kernels.compile import canonical, is_small
from dichotomies._kernels.node_scores import Room, SparseNodes, empty_room
from dichotomies._kernels.score_maps import FARTHEST
from dichotomies._kernels.sparse_search import best_first_sparse
from dichotomies.calibrators.binary import ScoreMaps
from dichotomies.inference.scorers import CalibratedScorer
from dichotomies.learners.weights import SparseWeights
from dichotomies.tree import ClassTree


def is_compiled(scorer: Any) -> bool:
    """Test whether the compiled loop can score such nodes."""
    return hasattr(_uncalibrated(scorer), "search_nodes")


def compiled_way(scorer: Any, X: Matrix) -> str | None:
    """Way in which the compiled loop scores such rows: "dense" or "sparse"; None if it cannot."""
    if not is_compiled(scorer):
        return None
    is_sparse = isinstance(_uncalibrated(scorer), SparseWeights)
    return "sparse" if is_sparse else "dense" if isinstance(X, np.ndarray) else None


def _uncalibrated(scorer: Any) -> Any:
    return scorer.scorer if isinstance(scorer, CalibratedScorer) else scorer


@dataclass(frozen=True, eq=False)
class CompiledSearch:
    """A tree as the compiled loop takes it; its arrays are canonical, which takes long to find out."""

    scorer: Any
    tree: SearchedTree
    ranking: Ranking
    paths: Paths

    @classmethod
    def of(
        cls, tree: ClassTree, scorer: Any, children: tuple[IntArray, IntArray], ranking: Ranking, paths: Paths
    ) -> CompiledSearch:
        """Lay out the nodes for searching."""
        if isinstance(scorer, CalibratedScorer):
            maps = Maps(*scorer.maps.flat, min(float(scorer.bound), FARTHEST))
        else:
            maps = Maps(*ScoreMaps.identity(0).flat, np.inf)
        inner = _uncalibrated(scorer)
        searched = SearchedTree(inner.search_nodes(tree), maps, *children)
        return cls(inner, *map(canonical, (searched, ranking, paths)))

    def rows(self, X: Matrix) -> Any:
        """Rows in the form that the loop takes; None if it cannot read them."""
        rows = self.scorer.search_rows(X)
        return None if rows is None else canonical(rows)

    def best(
        self, rows: Any, k: int, least: float, most: int | None, out: tuple[IntArray, FloatArray, IntArray]
    ) -> None:
        """Write codes, log-probabilities and visits of the `k` highest ranking classes."""
        n_nodes, n_rows = len(self.tree.left), len(out[0])
        memory = none_reached(n_nodes), empty_heap(n_nodes), self._room(rows)
        kernel = best_first_sparse if isinstance(self.tree.nodes, SparseNodes) else best_first
        work = _way(kernel, n_rows, min(n_nodes, 20 * k))
        most = 2 * n_nodes if most is None else most
        work(rows, self.tree, self.ranking, least, most, *memory, *out)

    def log_proba_of(self, rows: Any, codes: IntArray) -> tuple[FloatArray, IntArray]:
        """Log-probabilities of given classes (n_rows, m), minus infinity for codes of -1, and visits."""
        n_nodes, n_rows = len(self.tree.left), len(codes)
        out, n_visits = np.full(codes.shape, -np.inf), np.zeros(n_rows, dtype=np.intp)
        memory = np.full(n_nodes, -1), none_reached(n_nodes), self._room(rows)
        work = _way(along_paths, n_rows, min(n_nodes, 20 * codes.shape[1]))
        work(rows, self.tree, self.paths, np.ascontiguousarray(codes), *memory, out, n_visits)
        return out, n_visits

    def _room(self, rows: Any) -> Room:
        nodes = self.tree.nodes
        if not isinstance(nodes, SparseNodes):
            return empty_room(0, 0)
        _, indices, indptr = rows
        n_entries = self._n_entries[indices]
        if len(indptr) == 2:  # one request
            return empty_room(len(self.tree.left), int(n_entries.sum()))
        total = np.concatenate([[0], np.cumsum(n_entries)])
        return empty_room(len(self.tree.left), int(np.diff(total[indptr]).max(initial=0)))

    @cached_property
    def _n_entries(self) -> IntArray:
        """Number of entries of each feature."""
        n_entries: IntArray = np.diff(self.tree.nodes.offsets).astype(np.intp)
        return n_entries


def _way(kernel: Any, n_rows: int, n_visits: int) -> Callable[..., None]:
    """Plain code for a few visits, otherwise compiled code, whose arguments are canonical already."""
    small = is_small(n_rows, 1e-4 * n_rows * n_visits, is_answer=True)
    way: Callable[..., None] = kernel.when(True) if small else kernel.run
    return way
