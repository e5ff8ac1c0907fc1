"""Curves made of pieces, as ONNX operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies.export.graph import Graph

#: Ascending knots, and the coefficients of the polynomial that begins at each, the constant first.
Pieces = tuple[FloatArray, FloatArray]


def piecewise(graph: Graph, values: str, curves: Sequence[Pieces]) -> str:
    """Add the operators that apply a piecewise polynomial to each column of a matrix.

    The knots at or below a value are counted; the last of them begins the piece of the value, a polynomial in
    the distance from the knot. Values below the first knot are read as that knot.

    Parameters
    ----------
    curves : sequence of (knots, coefficients)
        Of each column: (n_knots,) and (n_knots, degree + 1).
    """
    width = max(len(knots) for knots, _ in curves)
    at = np.stack([_padded(knots, width) for knots, _ in curves])
    is_knot = np.arange(width) < np.array([[len(knots)] for knots, _ in curves])
    compared = np.where(is_knot, at, np.inf)[None]
    reached = graph.apply("GreaterOrEqual", graph.apply("Unsqueeze", values, graph.indices([2])), compared)
    numbers = graph.apply("Cast", reached, to=graph.type_of(np.int64))
    counted = graph.apply("ReduceSum", numbers, graph.indices([2]), keepdims=0)
    last = graph.apply("Max", graph.apply("Sub", counted, graph.indices(1)), graph.indices(0))
    place = graph.apply("Add", last, graph.indices(np.arange(len(curves)) * width))
    begin = graph.apply("Gather", graph.constant(at.ravel()), place)
    distance = graph.apply("Max", graph.apply("Sub", values, begin), 0.0)
    degree = max(coefficients.shape[1] for _, coefficients in curves) - 1
    result = ""
    for power in range(degree, -1, -1):  # Horner's scheme
        table = np.stack([_padded(_column(coefficients, power), width) for _, coefficients in curves])
        found = graph.apply("Gather", graph.constant(table.ravel()), place)
        result = graph.affine(result, distance, found) if result else found
    return result


def lines(knots: FloatArray, heights: FloatArray) -> Pieces:
    """Straight lines between knots, constant outside."""
    rise, run = np.diff(heights, append=heights[-1:]), np.diff(knots, append=knots[-1:])
    slope = np.divide(rise, run, out=np.zeros(len(knots)), where=run > 0)
    return knots, np.column_stack([heights, slope])


def cubics(knots: FloatArray, heights: FloatArray, slopes: FloatArray) -> Pieces:
    """Cubics with these heights and slopes at the knots (Hermite interpolation), constant outside."""
    width = np.where(np.diff(knots) > 0, np.diff(knots), 1.0)
    rise = np.diff(heights) / width
    second = (3 * rise - 2 * slopes[:-1] - slopes[1:]) / width
    third = (slopes[:-1] + slopes[1:] - 2 * rise) / width**2
    inner = np.column_stack([heights[:-1], slopes[:-1], second, third])
    return knots, np.vstack([inner, [heights[-1], 0.0, 0.0, 0.0]])


def _padded(values: FloatArray, width: int) -> FloatArray:
    return np.pad(values, (0, width - len(values)), mode="edge")


def _column(coefficients: FloatArray, power: int) -> FloatArray:
    has_it = power < coefficients.shape[1]
    return coefficients[:, power] if has_it else np.zeros(len(coefficients))
