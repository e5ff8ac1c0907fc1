"""Tasks of learners and structures from plain arrays."""

from dataclasses import replace

from dichotomies.rows import NodeTask, Rows
from dichotomies.structures import GrowingTask


def node_task(tree, X, codes, weight=None, nodes=None):
    return NodeTask(Rows(X, codes, tree.classes, weight), tree, nodes)


def in_folds(task, fold):
    """The same task with its rows divided into folds."""
    return replace(task, rows=replace(task.rows, fold=fold))


def growing_task(X, codes, classes, weight=None, judge=None):
    return GrowingTask(Rows(X, codes, classes, weight), judge)
