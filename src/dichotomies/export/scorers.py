"""Log-odds at the nodes, as ONNX operators: one function for each class of scorers."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from dichotomies._kernels.boosting.boosting import CATEGORICAL, MISSING_LEFT
from dichotomies._kernels.score_maps import AFFINE, BETA, CUBIC, LINEAR, LINES, QUADRATIC, STEPS
from dichotomies.calibrators.binary import ScoreMaps
from dichotomies.export.graph import Graph, Pieces, cubics, lines, piecewise
from dichotomies.inference.scorers import AveragedScorer, CalibratedScorer, JoinedScorer
from dichotomies.learners.boosting.trees import BoostedTrees
from dichotomies.learners.logistic.tuned import TunedScorer
from dichotomies.learners.naive_bayes.gaussian import GaussianNodes
from dichotomies.learners.naive_bayes.learner import Binarised
from dichotomies.learners.weights import DenseWeights, SparseWeights


def boosted_log_odds(trees: BoostedTrees, graph: Graph, X: str) -> str:
    """Add one operator that sums the trees of all nodes, and scale its sums."""
    if (trees.kind == CATEGORICAL).any():
        raise TypeError("Boosted trees with categorical features cannot be exported; encode them as numbers.")
    nodes, leaves = _nodes(trees), _leaves(trees)
    tensor = graph.tensor
    sums = graph.apply(
        "TreeEnsembleRegressor",
        X,
        n_targets=len(trees.base),
        post_transform="NONE",
        aggregate_function="SUM",
        nodes_values_as_tensor=tensor(nodes.pop("values")),
        target_weights_as_tensor=tensor(leaves.pop("weights")),
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"target_{name}": values for name, values in leaves.items()},
    )
    sums = graph.apply("Cast", sums, to=graph.type_of(np.float64))  # the operator's sums are single precision
    return graph.affine(sums, trees.scale, trees.base)


def _nodes(trees: BoostedTrees) -> dict[str, Any]:
    """Splits and leaves of all trees; in a tree, splits are numbered first."""
    n_splits = np.diff(trees.split_offsets)
    tree = np.repeat(np.arange(len(n_splits)), 2 * n_splits + 1)
    first = np.concatenate([[0], np.cumsum(2 * n_splits + 1)])[:-1]
    number = np.arange(len(tree)) - first[tree]
    is_split = number < n_splits[tree]
    children = _children(trees)
    edge = trees.edge_offsets[trees.column] + trees.limit
    has_edge = edge < trees.edge_offsets[trees.column + 1]
    threshold = np.where(has_edge, trees.edges[np.minimum(edge, len(trees.edges) - 1)], np.inf)

    def of_splits(values: Any) -> Any:
        placed = np.zeros(len(tree), dtype=np.asarray(values).dtype)
        placed[is_split] = values
        return placed

    return {
        "treeids": tree.tolist(),
        "nodeids": number.tolist(),
        "featureids": of_splits(trees.features[trees.column]).tolist(),
        "values": of_splits(threshold),
        "modes": np.where(is_split, "BRANCH_LEQ", "LEAF").tolist(),
        "truenodeids": of_splits(children[0]).tolist(),
        "falsenodeids": of_splits(children[1]).tolist(),
        "missing_value_tracks_true": of_splits((trees.kind == MISSING_LEFT).astype(np.int64)).tolist(),
    }


def _children(trees: BoostedTrees) -> Any:
    """Numbers of the left and the right child of every split: later splits of the same leaf, or leaves."""
    children = np.empty((2, len(trees.leaf)), dtype=np.int64)
    for begin, end in zip(trees.split_offsets[:-1].tolist(), trees.split_offsets[1:].tolist(), strict=True):
        n = end - begin
        node_of_leaf = np.arange(n, 2 * n + 1)
        for s in range(n - 1, -1, -1):
            leaf = trees.leaf[begin + s]
            children[:, begin + s] = node_of_leaf[leaf], node_of_leaf[s + 1]
            node_of_leaf[leaf] = s
    return children


def _leaves(trees: BoostedTrees) -> dict[str, Any]:
    """The value of each leaf, and the node of the nested dichotomy that it counts for."""
    n_splits = np.diff(trees.split_offsets)
    tree = np.repeat(np.arange(len(n_splits)), n_splits + 1)
    first = trees.split_offsets[:-1] + np.arange(len(n_splits))
    target = np.repeat(np.arange(len(trees.base)), np.diff(trees.tree_offsets))
    number = n_splits[tree] + np.arange(len(tree)) - first[tree]
    return {
        "treeids": tree.tolist(),
        "nodeids": number.tolist(),
        "ids": target[tree].tolist(),
        "weights": trees.value,
    }


@singledispatch
def log_odds(scorer: Any, graph: Graph, X: str) -> str:  # noqa: ARG001 - the arguments of all of them
    """Add the operators that give the log-odds of going left, (rows, n_nodes)."""
    raise TypeError(
        f"Nodes of the kind {type(scorer).__name__} cannot be exported; logistic regression, naive Bayes "
        "and boosted trees on their fast paths can."
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
    terms = graph.affine(y, expanded.steep.square, expanded.steep.linear)
    to_nodes = np.zeros((len(feature), len(scorer.constant)))
    to_nodes[np.arange(len(feature)), expanded.steep_node] = 1.0
    return graph.apply("Add", scores, graph.apply("MatMul", graph.apply("Mul", terms, y), to_nodes))


@log_odds.register
def _(scorer: Binarised, graph: Graph, X: str) -> str:
    above = graph.apply("Greater", X, scorer.rule.threshold)
    return log_odds(scorer.scorer, graph, graph.apply("Cast", above, to=graph.type_of(np.float64)))


@log_odds.register
def _(scorer: BoostedTrees, graph: Graph, X: str) -> str:
    return boosted_log_odds(scorer, graph, X)


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
    for kinds, apply in _MAPS.items():
        few = np.flatnonzero(np.isin(maps.kinds, kinds))
        if len(few):
            parts.append(apply(maps, few, graph, graph.columns(scores, few)))
            places.append(few)
    joined = graph.apply("Concat", *parts, axis=1)
    return graph.columns(joined, np.argsort(np.concatenate(places)))


def _affine(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    a, b, _ = maps.parameters[few].T
    return graph.affine(scores, a, b)


def _beta(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    a, b, c = maps.parameters[few].T
    up = graph.apply("Mul", graph.apply("Softplus", scores), b)
    down = graph.apply("Mul", graph.apply("Softplus", graph.apply("Neg", scores)), a)
    return graph.apply("Add", graph.apply("Sub", up, down), c)


def _quadratic(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    a, b, c = maps.parameters[few].T
    low, high = (maps.knot_scores[maps.knot_offsets[few] + end] for end in (0, 1))
    rate = np.divide(1.0, high - low, out=np.zeros(len(few)), where=high > low)
    t = graph.apply("Mul", graph.apply("Sub", scores, low), rate)
    inner = graph.apply("Clip", t, 0.0, 1.0)
    rest = graph.apply("Sub", 1.0, inner)
    up = graph.apply("Mul", graph.apply("Mul", inner, inner), b / 2)
    down = graph.apply("Mul", graph.apply("Mul", rest, rest), a / 2)
    below = graph.apply("Mul", graph.apply("Min", t, 0.0), a)
    above = graph.apply("Mul", graph.apply("Max", graph.apply("Sub", t, 1.0), 0.0), b)
    parabola = graph.apply("Add", graph.apply("Sub", up, down), c)
    return graph.apply("Add", parabola, graph.apply("Add", below, above))


def _curves(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    """Log-odds of probabilities that are lines, steps or cubics between knots."""
    p = piecewise(graph, scores, [_pieces(maps, k) for k in few])
    return graph.apply("Log", graph.apply("Div", p, graph.apply("Sub", 1.0, p)))


def _pieces(maps: ScoreMaps, k: int) -> Pieces:
    own = slice(*maps.knot_offsets[k : k + 2])
    knots, values = maps.knot_scores[own], maps.knot_probabilities[own]
    if maps.kinds[k] == CUBIC:
        return cubics(knots[::2], values[::2], values[1::2])
    return lines(knots, values) if maps.kinds[k] == LINEAR else (knots, values[:, None])


def _straight(maps: ScoreMaps, few: Any, graph: Graph, scores: str) -> str:
    """A line of the score from each knot up to the next."""
    slopes, intercepts = [], []
    for k in few:
        own = slice(*maps.knot_offsets[k : k + 2])
        knots, values = maps.knot_scores[own], maps.knot_probabilities[own]
        slopes.append((knots[::2], values[::2, None]))
        intercepts.append((knots[::2], values[1::2, None]))
    steep = graph.apply("Mul", scores, piecewise(graph, scores, slopes))
    return graph.apply("Add", steep, piecewise(graph, scores, intercepts))


#: Functions by the kinds of maps that they apply.
_MAPS: dict[tuple[int, ...], Callable[[ScoreMaps, Any, Graph, str], str]] = {
    (AFFINE,): _affine,
    (BETA,): _beta,
    (LINEAR, STEPS, CUBIC): _curves,
    (LINES,): _straight,
    (QUADRATIC,): _quadratic,
}
