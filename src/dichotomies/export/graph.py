"""`Graph`: an ONNX graph under construction."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

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
