"""`Graph`: an ONNX graph under construction."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.composition import levels
from dichotomies.tree import ClassTree


def composed(graph: Graph, tree: ClassTree, scores: str) -> str:
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


def implied(graph: Graph, tree: ClassTree, log_proba: str) -> str:
    """Log-odds at every node that class log-probabilities imply, level by level from below."""
    parts, place, end = [log_proba], np.empty(tree.n_nodes, dtype=np.intp), tree.n_classes
    log_odds = []
    for level in reversed(levels(tree.left, tree.right)):
        below = parts[0] if len(parts) == 1 else graph.apply("Concat", *parts, axis=1)
        sides = [
            graph.columns(
                below,
                np.where(child < 0, tree.leaf_order[~np.minimum(child, -1)], place[np.maximum(child, 0)]),
            )
            for child in (tree.left[level], tree.right[level])
        ]
        log_odds.append(graph.apply("Sub", *sides))
        parts = [below, graph.log_sum_exp(sides)]
        place[level] = end + np.arange(level.stop - level.start)
        end += level.stop - level.start
    return graph.apply("Concat", *reversed(log_odds), axis=1)


#: Versions of the operators of ONNX and of its extension for trees.
OPSET, TREE_OPSET = 18, 3
_TREES = "ai.onnx.ml"


class Graph:
    """Operators and constants in the order in which they were added; values are known by their names."""

    def __init__(self) -> None:
        self._helper, self._numpy = _onnx("helper"), _onnx("numpy_helper")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Add a constant array."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._numpy.from_array(np.asarray(values, dtype), name))
        return name

    def tensor(self, values: Any) -> Any:
        """Array for an attribute of an operator."""
        return self._numpy.from_array(np.asarray(values, np.float64))

    def apply(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add an operator; inputs are names of values, or arrays of floats."""
        name = f"{operator}_{len(self._nodes)}"
        given = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        domain = _TREES if operator.startswith("TreeEnsemble") else ""
        self._nodes.append(self._helper.make_node(operator, given, [name], domain=domain, **attributes))
        return name

    def indices(self, values: Any) -> str:
        """Add a constant array of integers."""
        return self.constant(values, np.int64)

    def type_of(self, dtype: Any) -> int:
        """Number of a data type in ONNX."""
        return int(self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def columns(self, values: str, chosen: Any) -> str:
        """Some columns of a matrix."""
        return self.apply("Gather", values, self.indices(chosen), axis=1)

    def affine(self, x: str, scale: Any, shift: Any) -> str:
        """Add ``scale * x + shift``."""
        return self.apply("Add", self.apply("Mul", x, scale), shift)

    def log_sigmoid(self, z: str) -> str:
        """Add ``min(z, 0) - log(1 + exp(-|z|))``."""
        tail = self.apply("Exp", self.apply("Neg", self.apply("Abs", z)))
        return self.apply("Sub", self.apply("Min", z, 0.0), self.apply("Log", self.apply("Add", tail, 1.0)))

    def log_sum_exp(self, values: Sequence[str]) -> str:
        """Add the logarithm of the sum of the exponentials of several matrices."""
        layers = [self.apply("Unsqueeze", each, self.indices([0])) for each in values]
        stacked = self.apply("Concat", *layers, axis=0)
        return self.apply("ReduceLogSumExp", stacked, self.indices([0]), keepdims=0)

    def model(
        self, inputs: dict[str, tuple[Any, int]], outputs: dict[str, tuple[str, Any, list[int]]]
    ) -> Any:
        """Finish the model.

        Parameters
        ----------
        inputs : dict
            Type and number of columns by name; the number of rows is free.
        outputs : dict
            Value, type and lengths of the axes behind the rows, by name.
        """
        helper = self._helper
        given = [self._info(name, kind, [width]) for name, (kind, width) in inputs.items()]
        answers = []
        for name, (value, kind, shape) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))
            answers.append(self._info(name, kind, shape))
        graph = helper.make_graph(self._nodes, "dichotomies", given, answers, self._constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(_TREES, TREE_OPSET)]
        model = helper.make_model(graph, opset_imports=versions, producer_name="dichotomies", ir_version=9)
        _onnx("checker").check_model(model)
        return model

    def _info(self, name: str, dtype: Any, shape: list[int]) -> Any:
        return self._helper.make_tensor_value_info(name, self.type_of(dtype), ["rows", *shape])


def _onnx(module: str) -> Any:
    try:
        return import_module(f"onnx.{module}")
    except ImportError as error:
        raise ImportError("Exporting to ONNX needs onnx: pip install 'dichotomies[onnx]'.") from error


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
