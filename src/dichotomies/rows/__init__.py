"""The training rows, the parts they are divided into, and their order at the nodes of a tree."""

from dichotomies.rows.rows import NodeTask, OwnPairs, Rows
from dichotomies.rows.segments import Segments

__all__ = ["NodeTask", "OwnPairs", "Rows", "Segments"]
