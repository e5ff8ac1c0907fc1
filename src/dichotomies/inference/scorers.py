"""Trained nodes put together: with a calibrating map each, averaged over folds, or side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import log_expit

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies.calibrators.binary import ScoreMaps
from dichotomies.learners import Scorer
from dichotomies.learners.base import SCORER
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Each, Part, check_value, expect

#: Bound that log-odds are clipped to where nodes are calibrated. Naive Bayes can answer with log-odds of a
#: billion; a slope fitted to those would hide the differences that matter.
MOST_LOG_ODDS = 200.0


class GivenScores:
    """Log-odds that were computed before and are given in place of the features."""

    def log_odds(self, X: FloatArray) -> FloatArray:
        """Return a copy of the log-odds."""
        return X.copy()

    def pair_log_odds(self, X: FloatArray, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of row ``rows[i]`` at node ``nodes[i]``."""
        return X[rows, nodes]


@savable("calibrated-scorer", scorer=SCORER, maps=Part(ScoreMaps, n_maps="n_nodes"), bound=Real)
@dataclass(frozen=True)
class CalibratedScorer:
    """Nodes whose log-odds go through a calibrating map each.

    Attributes
    ----------
    bound : float
        Scores are clipped to ``[-bound, bound]`` first, as they were when the maps were fitted.
    """

    scorer: Scorer
    maps: ScoreMaps
    bound: float

    def log_odds(self, X: Matrix) -> FloatArray:
        """Calibrated log-odds of going left for each row at each node."""
        scores = self.scorer.log_odds(X)
        np.clip(scores, -self.bound, self.bound, out=scores)
        self.maps.apply(scores)
        return scores

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Calibrated log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        scores = np.clip(self.scorer.pair_log_odds(X, rows, nodes), -self.bound, self.bound)
        return self.maps.apply_pairs(scores, nodes)


@savable("averaged-scorer", members=Each(SCORER))
@dataclass(frozen=True)
class AveragedScorer:
    """Several models of the same nodes; their probabilities are averaged at every node."""

    members: Sequence[Scorer]

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of the mean probability of going left for each row at each node."""
        return averaged(member.log_odds(X) for member in self.members)

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of the mean probability of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return averaged(member.pair_log_odds(X, rows, nodes) for member in self.members)


def averaged(members: Iterator[FloatArray]) -> FloatArray:
    """Log-odds of the mean probability, from each member's log-odds."""
    scores = next(members)
    left, right = log_expit(scores), log_expit(-scores)
    for scores in members:
        np.logaddexp(left, log_expit(scores), out=left)
        np.logaddexp(right, log_expit(-scores), out=right)
    return np.subtract(left, right, out=left)


@savable("joined-scorer", parts=Each(object, "n_parts"), sizes=Each(int, "n_parts"))
@dataclass(frozen=True)
class JoinedScorer:
    """Nodes that were trained apart, side by side.

    Attributes
    ----------
    parts : sequence of Scorer
    sizes : sequence of int
        Number of nodes of each.
    """

    parts: Sequence[Scorer]
    sizes: Sequence[int]

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node, of the first part first."""
        out = np.empty((X.shape[0], sum(self.sizes)))
        begin = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            out[:, begin : begin + size] = part.log_odds(X)
            begin += size
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out = np.empty(len(rows))
        ends = np.cumsum(self.sizes)
        which = np.searchsorted(ends, nodes, side="right")
        for p in np.unique(which).tolist():
            mine = np.flatnonzero(which == p)
            own = nodes[mine] - (ends[p] - self.sizes[p])
            out[mine] = self.parts[p].pair_log_odds(X, rows[mine], own)
        return out

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless each part has as many nodes as its size says; see `dichotomies.persistence.checks`."""
        expect(sum(self.sizes) == names["n_nodes"], f"there are {names['n_nodes']} nodes")
        for part, size in zip(self.parts, self.sizes, strict=True):
            check_value(SCORER, part, "a part", {"n_nodes": size, "n_features": names["n_features"]})


@savable("some-nodes", nodes=Array("integer", "n_nodes"))
@dataclass(frozen=True)
class SomeNodes:
    """Some nodes of a scorer, in an order of their own."""

    scorer: Scorer
    nodes: IntArray

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each of the nodes."""
        return np.take(self.scorer.log_odds(X), self.nodes, axis=1)

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return self.scorer.pair_log_odds(X, rows, self.nodes[nodes])

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless the nodes are some of the scorer's; see `dichotomies.persistence.checks`."""
        sizes = self.scorer.sizes if isinstance(self.scorer, JoinedScorer) else []
        expect(len(sizes) > 0, "some nodes are taken of parts that were joined")
        n_nodes = sum(sizes)
        check_value(Array("integer", "n_taken", within=(0, n_nodes)), self.nodes, "nodes", {})
        check_value(SCORER, self.scorer, "scorer", {"n_nodes": n_nodes, "n_features": names["n_features"]})


def some_nodes(scorer: Any, nodes: IntArray) -> Scorer:
    """Some nodes of a scorer; of linear and Gaussian nodes, again a scorer of that kind."""
    parts: Sequence[Any] = scorer.parts if isinstance(scorer, JoinedScorer) else [scorer]
    if all(isinstance(part, AveragedScorer) for part in parts):
        return _some_averaged(parts, nodes)
    if all(isinstance(part, CalibratedScorer) and part.bound == parts[0].bound for part in parts):
        inner = JoinedScorer([part.scorer for part in parts], [len(part.maps) for part in parts])
        maps = ScoreMaps.gathered([part.maps for part in parts], nodes)
        return CalibratedScorer(some_nodes(inner, nodes), maps, parts[0].bound)
    kinds = {(type(part), type(getattr(part, "scorer", None))) for part in parts}
    if len(kinds) == 1 and hasattr(parts[0], "gathered"):
        taken: Scorer = parts[0].gathered(parts, nodes)
        return taken
    return _flattened(scorer, nodes) if isinstance(scorer, JoinedScorer) else SomeNodes(scorer, nodes)


def _flattened(scorer: JoinedScorer, nodes: IntArray) -> SomeNodes:
    """Some nodes of parts side by side, none of which is again some nodes of parts."""
    parts: list[Scorer] = []
    sizes: list[int] = []
    places: list[IntArray] = []
    for part, size in zip(scorer.parts, scorer.sizes, strict=True):
        inner = part.scorer if isinstance(part, SomeNodes) else None
        own = part.nodes if isinstance(part, SomeNodes) else np.arange(size)
        places.append(sum(sizes) + own)
        parts += inner.parts if isinstance(inner, JoinedScorer) else [part]
        sizes += inner.sizes if isinstance(inner, JoinedScorer) else [size]
    return SomeNodes(JoinedScorer(parts, sizes), np.concatenate(places)[nodes])


def edited(scorer: Any, n_nodes: int, source: IntArray, parts: Sequence[tuple[Scorer, int]]) -> Scorer:
    """Nodes of a scorer and of further parts, mixed.

    Parameters
    ----------
    n_nodes : int
        Number of the scorer's nodes.
    source : (n_new_nodes,)
        Number of each node in the scorer, or -1 for the next node of the parts.
    parts : sequence of (Scorer, int)
        With their numbers of nodes.
    """
    is_joined = isinstance(scorer, JoinedScorer)
    known, sizes = (scorer.parts, scorer.sizes) if is_joined else ([scorer], [n_nodes])
    nodes = np.where(source < 0, n_nodes + np.cumsum(source < 0) - 1, source)
    joined = JoinedScorer([*known, *(part for part, _ in parts)], [*sizes, *(size for _, size in parts)])
    return some_nodes(joined, nodes)


def _some_averaged(parts: Sequence[AveragedScorer], nodes: IntArray) -> AveragedScorer:
    """Some nodes of averaged parts; their members are calibrated, so that their sizes are known."""
    members = zip(*(part.members for part in parts), strict=True)
    return AveragedScorer(
        [some_nodes(JoinedScorer(each, [len(part.maps) for part in each]), nodes) for each in members]
    )


def base_scorers(scorer: Any) -> list[Any]:
    """The learners' own scorers underneath."""
    if isinstance(scorer, AveragedScorer):
        return [base for member in scorer.members for base in base_scorers(member)]
    return base_scorers(scorer.scorer) if isinstance(scorer, CalibratedScorer) else [scorer]
