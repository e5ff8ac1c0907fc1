"""How a tree is grown: one file per family, one name per structure."""

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, TreeJudge
from dichotomies.structures.fixed import FixedTree, resolve

__all__ = ["STRUCTURES", "FixedTree", "GrowingTask", "Structure", "TreeJudge", "resolve"]
