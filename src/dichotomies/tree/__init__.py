"""Binary trees over the classes, as flat arrays."""

from dichotomies.tree.class_tree import ClassTree, Cut

__all__ = ["ClassTree", "Cut"]
