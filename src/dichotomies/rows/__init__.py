"""The training rows, the parts they are divided into, and their order at the nodes of a tree."""

from dichotomies.rows.node_task import NodeTask, OwnPairs
from dichotomies.rows.rows import Rows
from dichotomies.rows.segments import Segments

__all__ = ["NodeTask", "OwnPairs", "Rows", "Segments"]
