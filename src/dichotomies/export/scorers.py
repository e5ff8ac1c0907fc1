"""Log-odds at the nodes, as ONNX operators: one function for each class of scorers."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.score_maps import AFFINE, BETA, LINEAR
from dichotomies.export.graph import Graph
from dichotomies.export.interpolation import interpolated
from dichotomies.inference.scorers import AveragedScorer, CalibratedScorer, JoinedScorer
from dichotomies.learners.logistic.tuned import TunedScorer
from dichotomies.learners.naive_bayes.gaussian import GaussianNodes
from dichotomies.learners.naive_bayes.learner import Binarised
from dichotomies.learners.weights import DenseWeights, SparseWeights

if TYPE_CHECKING:
    from dichotomies.calibrators.binary import ScoreMaps


@singledispatch
def log_odds(scorer: Any, graph: Graph, X: str) -> str:  # noqa: ARG001 - the arguments of all of them
    """Add the operators that give the log-odds of going left, (rows, n_nodes)."""
    raise TypeError(
        f"Nodes of the kind {type(scorer).__name__} cannot be exported; logistic regression and naive Bayes "
        "on their fast paths can."
    )


@log_odds.register
def _(scorer: DenseWeights, graph: Graph, X: str) -> str:
    return graph.apply("Add", graph.apply("MatMul", X, scorer.weights.T), scorer.intercept)


@log_odds.register
def _(scorer: SparseWeights, graph: Graph, X: str) -> str:
    weights = np.tile(scorer.background, (len(scorer.feature_offsets) - 1, 1))
    feature = np.repeat(np.arange(len(weights)), np.diff(scorer.feature_offsets))
    weights[feature, scorer.node] += scorer.value
    return graph.apply("Add", graph.apply("MatMul", X, weights), scorer.intercept)


@log_odds.register
def _(scorer: GaussianNodes, graph: Graph, X: str) -> str:
    expanded = scorer.expanded
    shifted = graph.apply("Sub", X, scorer.shift)
    powers = graph.apply("Concat", graph.apply("Mul", shifted, shifted), shifted, axis=1)
    scores = graph.apply("Add", graph.apply("MatMul", powers, expanded.coefficients), expanded.constant)
    if not len(expanded.steep_node):
        return scores
    feature = np.repeat(np.arange(len(scorer.shift)), np.diff(expanded.steep_offsets))
    y = graph.apply("Sub", graph.columns(X, feature), expanded.steep.center)
    terms = graph.apply("Add", graph.apply("Mul", y, expanded.steep.square), expanded.steep.linear)
    to_nodes = np.zeros((len(feature), len(scorer.constant)))
    to_nodes[np.arange(len(feature)), expanded.steep_node] = 1.0
    return graph.apply("Add", scores, graph.apply("MatMul", graph.apply("Mul", terms, y), to_nodes))


@log_odds.register
def _(scorer: Binarised, graph: Graph, X: str) -> str:
    above = graph.apply("Greater", X, scorer.rule.threshold)
    return log_odds(scorer.scorer, graph, graph.apply("Cast", above, to=graph.type_of(np.float64)))


@log_odds.register
def _(scorer: TunedScorer, graph: Graph, X: str) -> str:
    return log_odds(scorer.nodes, graph, X)


@log_odds.register
def _(scorer: JoinedScorer, graph: Graph, X: str) -> str:
    return graph.apply("Concat", *(log_odds(part, graph, X) for part in scorer.parts), axis=1)


@log_odds.register
def _(scorer: AveragedScorer, graph: Graph, X: str) -> str:
    scores = [log_odds(member, graph, X) for member in scorer.members]
    left = graph.log_sum_exp([graph.log_sigmoid(each) for each in scores])
    right = graph.log_sum_exp([graph.log_sigmoid(graph.apply("Neg", each)) for each in scores])
    return graph.apply("Sub", left, right)


@log_odds.register
def _(scorer: CalibratedScorer, graph: Graph, X: str) -> str:
    scores = graph.apply("Clip", log_odds(scorer.scorer, graph, X), -scorer.bound, scorer.bound)
    return _mapped(scorer.maps, graph, scores)


def _mapped(maps: ScoreMaps, graph: Graph, scores: str) -> str:
    """Calibrated log-odds: each kind of map is applied to its own nodes, whose order is then restored."""
    parts, places = [], []
    for kinds, apply in (([AFFINE], _affine), ([BETA], _beta), ([LINEAR, LINEAR + 1], _knots)):
        few = np.flatnonzero(np.isin(maps.kinds, kinds))
        if len(few):
            parts.append(apply(maps, few, graph, graph.columns(scores, few)))
            places.append(few)
    joined = graph.apply("Concat", *parts, axis=1)
    return graph.columns(joined, np.argsort(np.concatenate(places)))


def _affine(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    a, b, _ = maps.parameters[few].T
    return graph.apply("Add", graph.apply("Mul", scores, a), b)


def _beta(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    a, b, c = maps.parameters[few].T
    up = graph.apply("Mul", graph.apply("Softplus", scores), b)
    down = graph.apply("Mul", graph.apply("Softplus", graph.apply("Neg", scores)), a)
    return graph.apply("Add", graph.apply("Sub", up, down), c)


def _knots(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    ends = [slice(*maps.knot_offsets[k : k + 2]) for k in few]
    curves = [(maps.knot_scores[own], maps.knot_probabilities[own]) for own in ends]
    p = interpolated(graph, scores, curves, maps.kinds[few] == LINEAR)
    return graph.apply("Log", graph.apply("Div", p, graph.apply("Sub", 1.0, p)))
