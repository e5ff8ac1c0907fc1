"""`to_onnx`: a fitted classifier as an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.export.calibrators import calibrated
from dichotomies.export.graph import Graph, composed
from dichotomies.export.scorers import log_odds
from dichotomies.inference.fitted import FittedForest, GivenProbabilities


def to_onnx(clf: Any, *, dtype: npt.DTypeLike = np.float64) -> Any:
    """Convert a fitted classifier, or a calibrator, to ONNX: a model that other runtimes execute.

    All of it is exported: nodes, calibration of nodes and of classes, ensembles. Nodes may be logistic
    regression, naive Bayes or boosted trees on their fast paths; others raise an error. Computations are in
    double precision, except the sums of boosted trees.

    Of a `CalibratedClassifier` the calibration is exported, behind whatever exports the classifier: the
    input is the classifier's log-probabilities or logits. So it is of a multiclass calibrator.

    Parameters
    ----------
    clf : fitted NestedDichotomyClassifier, NestedDichotomyEnsemble, CalibratedClassifier or calibrator
    dtype : {float64, float32}
        Type of the input.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` of shape (rows, n_features or n_classes); outputs ``label`` (rows,), and
        ``probabilities`` and ``log_probabilities`` (rows, n_classes) in the order of ``clf.classes_``.

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
    if not isinstance(clf, MulticlassCalibrator) and not hasattr(clf, "model_"):
        raise TypeError(f"Only classifiers of this package can be exported, not {type(clf).__name__}.")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}.")
    graph = Graph()
    X = graph.apply("Cast", "X", to=graph.type_of(np.float64))
    if isinstance(clf, MulticlassCalibrator):
        log_proba, classes, n_features = calibrated(clf, graph, X), np.arange(clf.n_classes_), clf.n_classes_
    else:
        log_proba, classes, n_features = _log_proba(graph, clf.model_, X), clf.classes_, clf.n_features_in_
        if isinstance(clf.model_.scorer, GivenProbabilities):
            n_features = clf.model_.n_classes
    best = graph.apply("ArgMax", log_proba, axis=1, keepdims=0)
    labels, kind = _labels(classes)
    return graph.model(
        {"X": (dtype, n_features)},
        {
            "label": (graph.apply("Gather", graph.constant(labels, kind), best), kind, []),
            "probabilities": (graph.apply("Exp", log_proba), np.float64, [len(classes)]),
            "log_probabilities": (log_proba, np.float64, [len(classes)]),
        },
    )


def _labels(classes: Any) -> tuple[Any, Any]:
    """Labels in a type that ONNX has: integers, or else text."""
    return (classes, np.int64) if classes.dtype.kind in "iub" else (classes.astype(str), object)


def _log_proba(graph: Graph, model: FittedForest, X: str) -> str:
    """Log-probabilities of the classes."""
    if isinstance(model.scorer, GivenProbabilities) and model.external is not None:
        return calibrated(model.external, graph, X)
    forest = model.forest
    scores = log_odds(model.scorer, graph, X)
    members = []
    for t, tree in enumerate(forest.trees):
        own = scores
        if len(forest.trees) > 1:
            signs = np.where(forest.is_exchanged[t], -1.0, 1.0)
            own = graph.apply("Mul", graph.columns(scores, forest.place[t]), signs)
        member = composed(graph, tree, own)
        calibrator = model.members[t] if model.members else None
        members.append(member if calibrator is None else calibrated(calibrator, graph, member))
    pooled = members[0] if len(members) == 1 else _pooled(graph, members, model.pooling)
    return pooled if model.external is None else calibrated(model.external, graph, pooled)


def _pooled(graph: Graph, members: list[str], pooling: str) -> str:
    """Normalised geometric mean, or arithmetic mean, of the members."""
    if pooling == "geometric":
        total = graph.apply("Sum", *members)
        return graph.apply("LogSoftmax", graph.apply("Div", total, len(members)), axis=1)
    return graph.apply("Sub", graph.log_sum_exp(members), np.log(len(members)))
