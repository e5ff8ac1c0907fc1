"""Unions of subtrees: the most probable ones of every size, by dynamic programming from the leaves upwards.

``mass[v, j, s]`` is the greatest probability of at most j subtrees below node v with at most s classes
together: of node v itself, if it is small enough, or of the best division of j and s between its sides. Of
equally probable unions the first one counts: the node itself, then those with fewer subtrees and classes on
the left.
"""

from typing import NamedTuple

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel


class Shape(NamedTuple):
    """A tree, and places in the tables of its nodes.

    Attributes
    ----------
    left, right : (n_nodes,)
        Child node, or ``~position`` of a leaf.
    start, stop : (n_nodes,)
        Range of leaf positions.
    offsets : (n_nodes + 1,)
        Start of each node's table of ``most * (size + 1)`` entries, and the end.
    """

    left: IntArray
    right: IntArray
    start: IntArray
    stop: IntArray
    offsets: IntArray


@kernel
def side(
    tree: Shape, child: int, j: int, s: int, sums: FloatArray, leaf: int, mass: FloatArray, holds: BoolArray
) -> tuple[float, bool]:
    """Mass of the best union of at most j subtrees and s classes below a child, and if it holds a leaf."""
    if j == 0 or s == 0:
        return 0.0, False
    if child < 0:
        return sums[~child + 1] - sums[~child], ~child == leaf
    size = tree.stop[child] - tree.start[child]
    place = tree.offsets[child] + (j - 1) * (size + 1) + min(s, size)
    return mass[place], holds[place]


@kernel
def fill_tables(
    tree: Shape, sums: FloatArray, leaf: int, most: int, mass: FloatArray, holds: BoolArray
) -> None:
    """Fill the tables for one row.

    Parameters
    ----------
    sums : (n_classes + 1,)
        Cumulative probabilities of the leaves.
    leaf : int
        A leaf position, or -1.
    most : int
        Greatest number of subtrees.
    mass, holds : (offsets[-1],)
        Written: probability, and whether the union holds the leaf.
    """
    for v in range(len(tree.left) - 1, -1, -1):  # children come after their parents
        size = tree.stop[v] - tree.start[v]
        n_left = 1 if tree.left[v] < 0 else tree.stop[tree.left[v]] - tree.start[tree.left[v]]
        for j in range(1, most + 1):
            for s in range(size + 1):
                best, held = 0.0, False
                if s == size:
                    best = sums[tree.stop[v]] - sums[tree.start[v]]
                    held = tree.start[v] <= leaf < tree.stop[v]
                else:
                    for a in range(j + 1):
                        for x in range(max(0, s - (size - n_left)), min(s, n_left) + 1):
                            one, in_one = side(tree, tree.left[v], a, x, sums, leaf, mass, holds)
                            two, in_two = side(tree, tree.right[v], j - a, s - x, sums, leaf, mass, holds)
                            if one + two > best:
                                best, held = one + two, in_one or in_two
                place = tree.offsets[v] + (j - 1) * (size + 1) + s
                mass[place], holds[place] = best, held


@kernel
def last_without(
    tree: Shape, sums: FloatArray, leaves: IntArray, mass: FloatArray, holds: BoolArray, out: FloatArray
) -> None:
    """Write the greatest probability for which the smallest union of each row lacks its leaf.

    Parameters
    ----------
    sums : (n_rows, n_classes + 1)
    leaves : (n_rows,)
    mass, holds
        Memory of the tables.
    out : (n_rows, most)
        Written, for at most 1, 2, ... subtrees; 0 if no union lacks it.
    """
    n = sums.shape[1] - 1
    for i in range(len(sums)):
        fill_tables(tree, sums[i], leaves[i], out.shape[1], mass, holds)
        for j in range(out.shape[1]):
            out[i, j] = 0.0
            for s in range(1, n + 1):
                place = tree.offsets[0] + j * (n + 1) + s
                if mass[place] > mass[place - 1] and not holds[place]:
                    out[i, j] = mass[place]


@kernel
def division(
    tree: Shape, v: int, j: int, s: int, sums: FloatArray, mass: FloatArray, holds: BoolArray
) -> tuple[int, int]:
    """Subtrees and classes on the left in the best union of at most j subtrees and s classes below a node."""
    size = tree.stop[v] - tree.start[v]
    n_left = 1 if tree.left[v] < 0 else tree.stop[tree.left[v]] - tree.start[tree.left[v]]
    best = mass[tree.offsets[v] + (j - 1) * (size + 1) + s]
    for a in range(j + 1):
        for x in range(max(0, s - (size - n_left)), min(s, n_left) + 1):
            one, _ = side(tree, tree.left[v], a, x, sums, -1, mass, holds)
            two, _ = side(tree, tree.right[v], j - a, s - x, sums, -1, mass, holds)
            if one + two == best:
                return a, x
    return 0, 0


@kernel
def smallest_unions(
    tree: Shape,
    sums: FloatArray,
    least: float,
    mass: FloatArray,
    holds: BoolArray,
    stack: IntArray,
    start: IntArray,
    stop: IntArray,
) -> None:
    """Write the ranges of the smallest union with at least a probability, for each row, from left to right.

    Parameters
    ----------
    sums : (n_rows, n_classes + 1)
    stack : (n_nodes + 1, 3)
        Memory.
    start, stop : (n_rows, most)
        Written; 0 and 0 for subtrees that are not needed. The whole tree where rounding leaves less.
    """
    n, most = sums.shape[1] - 1, start.shape[1]
    for i in range(len(sums)):
        fill_tables(tree, sums[i], -1, most, mass, holds)
        base = tree.offsets[0] + (most - 1) * (n + 1)
        size = 1
        while size < n and mass[base + size] < least:
            size += 1
        start[i], stop[i] = 0, 0
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, most, size
        height, found = 1, 0
        while height > 0:
            height -= 1
            v, j, s = stack[height]
            if j == 0 or s == 0:
                continue
            if v < 0 or s >= tree.stop[v] - tree.start[v]:
                start[i, found] = ~v if v < 0 else tree.start[v]
                stop[i, found] = ~v + 1 if v < 0 else tree.stop[v]
                found += 1
                continue
            a, x = division(tree, v, j, s, sums[i], mass, holds)
            stack[height, 0], stack[height, 1], stack[height, 2] = tree.right[v], j - a, s - x
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = tree.left[v], a, x
            height += 2
