"""`to_onnx`: a fitted classifier as an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from dichotomies.export.calibrators import calibrated
from dichotomies.export.graph import Graph
from dichotomies.export.scorers import log_odds
from dichotomies.inference.fitted import FittedForest
from dichotomies.tree import ClassTree


def to_onnx(clf: Any, *, dtype: npt.DTypeLike = np.float64) -> Any:
    """Convert a fitted classifier to ONNX: a model that other runtimes and languages execute.

    All of it is exported: nodes, calibration of nodes and of classes, ensembles. Nodes may be logistic
    regression, naive Bayes or boosted trees on their fast paths; others raise an error. Computations are in
    double precision, except the sums of boosted trees.

    Parameters
    ----------
    clf : fitted NestedDichotomyClassifier or NestedDichotomyEnsemble
    dtype : {float64, float32}
        Type of the input.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` of shape (rows, n_features); outputs ``label`` (rows,), and ``probabilities`` and
        ``log_probabilities`` (rows, n_classes) in the order of ``clf.classes_``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.export import to_onnx
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(internal_calibration="platt", random_state=0).fit(X, y)
    >>> model = to_onnx(clf)
    >>> [output.name for output in model.graph.output]
    ['label', 'probabilities', 'log_probabilities']
    >>> with open("digits.onnx", "wb") as file:  # doctest: +SKIP
    ...     file.write(model.SerializeToString())
    """
    check_is_fitted(clf)
    if not hasattr(clf, "model_"):
        raise TypeError(f"Only classifiers of this package can be exported, not {type(clf).__name__}.")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}.")
    graph = Graph()
    X = graph.apply("Cast", "X", to=graph.type_of(np.float64))
    log_proba = _log_proba(graph, clf.model_, X)
    best = graph.apply("ArgMax", log_proba, axis=1, keepdims=0)
    labels, kind = _labels(clf.classes_)
    return graph.model(
        {"X": (dtype, clf.n_features_in_)},
        {
            "label": (graph.apply("Gather", graph.constant(labels, kind), best), kind, []),
            "probabilities": (graph.apply("Exp", log_proba), np.float64, [len(clf.classes_)]),
            "log_probabilities": (log_proba, np.float64, [len(clf.classes_)]),
        },
    )


def _labels(classes: Any) -> tuple[Any, Any]:
    """Labels in a type that ONNX has: integers, or else text."""
    return (classes, np.int64) if classes.dtype.kind in "iub" else (classes.astype(str), object)


def _log_proba(graph: Graph, model: FittedForest, X: str) -> str:
    """Log-probabilities of the classes."""
    forest = model.forest
    scores = log_odds(model.scorer, graph, X)
    members = []
    for t, tree in enumerate(forest.trees):
        own = scores
        if len(forest.trees) > 1:
            signs = np.where(forest.is_exchanged[t], -1.0, 1.0)
            own = graph.apply("Mul", graph.columns(scores, forest.place[t]), signs)
        member = _composed(graph, tree, own)
        calibrator = model.members[t] if model.members else None
        members.append(member if calibrator is None else calibrated(calibrator, graph, member))
    pooled = members[0] if len(members) == 1 else _pooled(graph, members, model.pooling)
    return pooled if model.external is None else calibrated(model.external, graph, pooled)


def _composed(graph: Graph, tree: ClassTree, scores: str) -> str:
    """Sum of the log-probabilities of the turns on the path to each class, by pointer jumping.

    Turn k is to the left at node k, turn n + k to the right. In each round a turn adds the sum of the turn it
    points to, and points to where that one points: the number of rounds is the logarithm of the depth.
    """
    n = tree.n_nodes
    left, right = (graph.log_sigmoid(each) for each in (scores, graph.apply("Neg", scores)))
    nothing = graph.apply("Mul", graph.columns(scores, [0]), 0.0)  # what the turn 2 n, to the root, costs
    sums = graph.apply("Concat", left, right, nothing, axis=1)
    target = np.full(2 * n + 1, 2 * n)
    leaf_turn = np.empty(tree.n_classes, dtype=np.intp)
    for first, children in ((0, tree.left), (n, tree.right)):
        turn, is_node = first + np.arange(n), children >= 0
        for before in (0, n):
            target[before + children[is_node]] = turn[is_node]
        leaf_turn[tree.leaf_order[~children[~is_node]]] = turn[~is_node]
    while (target != 2 * n).any():
        sums = graph.apply("Add", sums, graph.columns(sums, target))
        target = target[target]
    return graph.columns(sums, leaf_turn)


def _pooled(graph: Graph, members: list[str], pooling: str) -> str:
    """Normalised geometric mean, or arithmetic mean, of the members."""
    if pooling == "geometric":
        total = graph.apply("Sum", *members)
        return graph.apply("LogSoftmax", graph.apply("Div", total, len(members)), axis=1)
    return graph.apply("Sub", graph.log_sum_exp(members), np.log(len(members)))
