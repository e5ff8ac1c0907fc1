"""Structures: algorithms that grow the class tree, one file per family, one registered name per algorithm."""

from dichotomies.structures.base import STRUCTURES, FixedTree, GrowingTask, Structure, TreeJudge, resolve

__all__ = ["STRUCTURES", "FixedTree", "GrowingTask", "Structure", "TreeJudge", "resolve"]

__getattr__, __dir__ = STRUCTURES.exports(__all__)
