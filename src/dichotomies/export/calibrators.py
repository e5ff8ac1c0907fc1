"""Calibration of class probabilities, as ONNX operators: one function for each class of calibrators."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dichotomies.calibrators.multiclass._calibration_rows import LOWEST
from dichotomies.calibrators.multiclass.auto import AutoCalibration, NoCalibration
from dichotomies.calibrators.multiclass.bias_temperature import BiasTemperatureScaling
from dichotomies.calibrators.multiclass.isotonic import IsotonicOneVsRest
from dichotomies.calibrators.multiclass.matrix import DirichletCalibration, MatrixScaling
from dichotomies.calibrators.multiclass.nested import NestedCalibration, VectorNestedCalibration
from dichotomies.calibrators.multiclass.odds import OddsScaling
from dichotomies.calibrators.multiclass.temperature import TemperatureScaling
from dichotomies.calibrators.multiclass.vector import VectorScaling, VectorScalingML
from dichotomies.export.graph import Graph, composed, implied, lines, piecewise


def calibrated(calibrator: Any, graph: Graph, log_proba: str) -> str:
    """Add the operators that calibrate log-probabilities (rows, n_classes)."""
    x = graph.apply("Max", graph.apply("LogSoftmax", log_proba, axis=1), LOWEST)
    return graph.apply("LogSoftmax", scores(calibrator, graph, x), axis=1)


@singledispatch
def scores(calibrator: Any, graph: Graph, x: str) -> str:  # noqa: ARG001 - the arguments of all of them
    """Add the operators that give calibrated log-probabilities up to a constant per row."""
    raise TypeError(f"{type(calibrator).__name__} cannot be exported; scaling methods can.")


@scores.register
def _(calibrator: NoCalibration, graph: Graph, x: str) -> str:  # noqa: ARG001
    return x


@scores.register
def _(calibrator: AutoCalibration, graph: Graph, x: str) -> str:
    return scores(calibrator.calibrator_, graph, x)


@scores.register
def _(calibrator: TemperatureScaling, graph: Graph, x: str) -> str:
    return graph.apply("Mul", x, calibrator.scale_)


@scores.register
def _(calibrator: BiasTemperatureScaling, graph: Graph, x: str) -> str:
    return graph.affine(x, calibrator.common_scale_, calibrator.bias_)


@scores.register(VectorScaling)
@scores.register(VectorScalingML)
def _(calibrator: Any, graph: Graph, x: str) -> str:
    if calibrator.on == "log_odds":
        x = _log_odds(graph, x, calibrator.n_classes_)
    return graph.affine(x, calibrator.scale_, calibrator.bias_)


@scores.register
def _(calibrator: OddsScaling, graph: Graph, x: str) -> str:
    odds = _log_odds(graph, graph.apply("Max", x, calibrator.floor), calibrator.n_classes_)
    scaled = graph.affine(odds, calibrator.scale_, calibrator.bias_)
    log_proba = graph.apply("LogSoftmax", scaled, axis=1)
    exponent, sharpness = calibrator.bend
    sharpened = graph.apply("Mul", graph.apply("Exp", log_proba), sharpness)
    bent = graph.affine(log_proba, exponent, sharpened)
    if not calibrator.noise:
        return bent
    lowest = graph.apply("ReduceMin", x, graph.indices([1]), keepdims=1)
    is_unlike = graph.apply("Less", lowest, calibrator.lowest)
    noise = graph.apply("Where", is_unlike, calibrator.most_noise, calibrator.noise)
    return _mixed(graph, bent, noise, calibrator.n_classes_)


def _mixed(graph: Graph, x: str, noise: Any, n_classes: int) -> str:
    """Log-probabilities mixed with a share of noise."""
    p = graph.apply("Mul", graph.apply("Softmax", x, axis=1), graph.apply("Sub", 1.0, noise))
    return graph.apply("Log", graph.apply("Add", p, graph.apply("Div", noise, float(n_classes))))


def _log_odds(graph: Graph, x: str, n_classes: int) -> str:
    """Log-odds of log-probabilities; that of the most probable class by the sum over the others."""
    best = graph.apply("ArgMax", x, axis=1, keepdims=1)
    is_best = graph.apply("Equal", best, graph.indices([np.arange(n_classes)]))
    others = graph.apply("Where", is_best, -np.finfo(np.float64).max, x)
    rest = graph.apply("ReduceLogSumExp", others, graph.indices([1]), keepdims=1)
    complement = graph.apply("Sub", 1.0, graph.apply("Exp", graph.apply("Min", x, -np.log(2.0))))
    return graph.apply("Sub", x, graph.apply("Where", is_best, rest, graph.apply("Log", complement)))


@scores.register
def _(calibrator: NestedCalibration, graph: Graph, x: str) -> str:
    x = graph.apply("Mul", x, calibrator.scale_)
    if calibrator.noise_:
        x = _mixed(graph, x, calibrator.noise_, calibrator.n_classes_)
    log_odds = implied(graph, calibrator.tree_, x)
    return composed(graph, calibrator.tree_, graph.affine(log_odds, calibrator.slope_, calibrator.bias_))


@scores.register
def _(calibrator: VectorNestedCalibration, graph: Graph, x: str) -> str:
    scaled = graph.apply("LogSoftmax", scores(calibrator.vector_, graph, x), axis=1)
    return scores(calibrator.nested_, graph, graph.apply("Max", scaled, LOWEST))


@scores.register(MatrixScaling)
@scores.register(DirichletCalibration)
def _(calibrator: Any, graph: Graph, x: str) -> str:
    return graph.apply("Add", graph.apply("MatMul", x, calibrator.matrix_.T), calibrator.bias_)


@scores.register
def _(calibrator: IsotonicOneVsRest, graph: Graph, x: str) -> str:
    return graph.apply("Log", piecewise(graph, x, [lines(*curve) for curve in calibrator.curves_]))
