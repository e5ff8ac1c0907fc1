"""Models for other runtimes: ONNX."""

from dichotomies.export.onnx import to_onnx

__all__ = ["to_onnx"]
