"""Log-odds at the nodes, as ONNX operators: one function for each class of scorers."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.score_maps import AFFINE, BETA, CUBIC, LINEAR, LINES, QUADRATIC, STEPS
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
    for kinds, apply in _APPLY:
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


def _quadratic(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    a, b, c = maps.parameters[few].T
    low, high = np.array([maps.knot_scores[maps.knot_offsets[k] :][:2] for k in few]).T
    t = graph.apply("Div", graph.apply("Sub", scores, low), np.where(high > low, high - low, 1.0))
    t = graph.apply("Mul", t, (high > low).astype(np.float64))
    inner = graph.apply("Clip", t, 0.0, 1.0)
    rest = graph.apply("Sub", 1.0, inner)
    up = graph.apply("Mul", graph.apply("Mul", inner, inner), 0.5 * b)
    down = graph.apply("Mul", graph.apply("Mul", rest, rest), 0.5 * a)
    beyond = graph.apply("Add", graph.apply("Mul", graph.apply("Min", t, 0.0), a), c)
    beyond = graph.apply(
        "Add", beyond, graph.apply("Mul", graph.apply("Max", graph.apply("Sub", t, 1.0), 0.0), b)
    )
    return graph.apply("Add", graph.apply("Sub", up, down), beyond)


def _lines(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    starts, pairs = _pairs(maps, few)
    slope = _steps(graph, scores, starts, [pair[:, 0] for pair in pairs])
    intercept = _steps(graph, scores, starts, [pair[:, 1] for pair in pairs])
    return graph.apply("Add", graph.apply("Mul", scores, slope), intercept)


def _cubics(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    """Cubics by their coefficients on each piece; the last piece, right of all knots, is constant."""
    starts, pairs = _pairs(maps, few)
    pieces = [_coefficients(at, pair) for at, pair in zip(starts, pairs, strict=True)]
    start, width, *powers = (_steps(graph, scores, starts, [piece[j] for piece in pieces]) for j in range(6))
    t = graph.apply("Clip", graph.apply("Div", graph.apply("Sub", scores, start), width), 0.0, 1.0)
    p = powers[3]
    for coefficient in powers[2::-1]:
        p = graph.apply("Add", graph.apply("Mul", p, t), coefficient)
    return graph.apply("Log", graph.apply("Div", p, graph.apply("Sub", 1.0, p)))


def _coefficients(at: Any, pair: Any) -> Any:
    """Start, width and the coefficients of 1, t, t^2 and t^3 of each piece (6, n_knots)."""
    p, slope = pair.T
    width, rise = np.append(np.diff(at), 1.0), np.append(np.diff(p), 0.0)
    first = width * np.append(slope[:-1], 0.0)
    last = width * np.append(slope[1:], 0.0)
    return np.array([at, width, p, first, 3 * rise - 2 * first - last, first + last - 2 * rise])


def _pairs(maps: ScoreMaps, few: Any) -> tuple[list[Any], list[Any]]:
    """Scores of the knots of each map, and their two values (n_knots, 2)."""
    ends = [slice(*maps.knot_offsets[k : k + 2]) for k in few]
    return [maps.knot_scores[own][::2] for own in ends], [
        maps.knot_probabilities[own].reshape(-1, 2) for own in ends
    ]


def _steps(graph: Graph, scores: str, starts: list[Any], values: list[Any]) -> str:
    """Values that are constant from each knot up to the next."""
    curves = list(zip(starts, values, strict=True))
    return interpolated(graph, scores, curves, np.zeros(len(curves), dtype=bool))


_APPLY = (
    ([AFFINE], _affine),
    ([BETA], _beta),
    ([LINEAR, STEPS], _knots),
    ([CUBIC], _cubics),
    ([LINES], _lines),
    ([QUADRATIC], _quadratic),
)
