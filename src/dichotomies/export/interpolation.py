"""Curves given by knots, as ONNX operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import BoolArray, FloatArray
    from dichotomies.export.graph import Graph


def interpolated(
    graph: Graph, values: str, curves: Sequence[tuple[FloatArray, FloatArray]], is_line: BoolArray
) -> str:
    """Add the operators that apply a curve to each column of a matrix.

    The knots at or below a value are counted; the last of them begins the line, or the step, of the value.

    Parameters
    ----------
    curves : sequence of (positions, heights)
        Knots of each column's curve, by ascending position.
    is_line : (n_columns,)
        True for curves that are linear between knots, False for steps; all are constant outside.
    """
    width = max(len(positions) for positions, _ in curves)
    at, height = (np.stack([_padded(curve[i], width) for curve in curves]) for i in (0, 1))
    is_knot = np.arange(width) < np.array([[len(positions)] for positions, _ in curves])
    rise, run = (np.diff(each, axis=1, append=each[:, -1:]) for each in (height, at))
    slope = np.divide(rise, run, out=np.zeros_like(rise), where=is_line[:, None] & (run > 0))
    knots = np.where(is_knot, at, np.inf)[None]
    reached = graph.apply("GreaterOrEqual", graph.apply("Unsqueeze", values, graph.indices([2])), knots)
    numbers = graph.apply("Cast", reached, to=graph.type_of(np.int64))
    counted = graph.apply("ReduceSum", numbers, graph.indices([2]), keepdims=0)
    last = graph.apply("Max", graph.apply("Sub", counted, graph.indices(1)), graph.indices(0))
    place = graph.apply("Add", last, graph.indices(np.arange(len(curves)) * width))
    begin, level, steepness = (_looked_up(graph, each, place) for each in (at, height, slope))
    beyond = graph.apply("Max", graph.apply("Sub", values, begin), 0.0)
    return graph.apply("Add", level, graph.apply("Mul", beyond, steepness))


def _padded(values: FloatArray, width: int) -> FloatArray:
    return np.pad(values, (0, width - len(values)), mode="edge")


def _looked_up(graph: Graph, table: Any, place: str) -> str:
    return graph.apply("Gather", graph.constant(table.ravel()), place)
