"""Log-probabilities of given classes of each row, by the nodes on their paths, each evaluated once a row."""

from typing import Any, NamedTuple

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.score_maps import AFFINE
from dichotomies._kernels.search.node_scores import Room, node_score
from dichotomies._kernels.search.visits import Reached, SearchedTree, log_likelier, mapped


class Paths(NamedTuple):
    """Ways from the root to each class.

    Attributes
    ----------
    nodes, goes_left : (n,)
        Nodes above the classes, and whether the class is on their left.
    offsets : (n_classes + 1,)
        Start of each class's path, and the end.
    """

    nodes: IntArray
    goes_left: BoolArray
    offsets: IntArray


@kernel
def along_paths(
    rows: Any,
    tree: SearchedTree,
    paths: Paths,
    codes: IntArray,
    visit_of: IntArray,
    reached: Reached,
    room: Room,
    log_proba: FloatArray,
    n_visits: IntArray,
) -> None:
    """Write the log-probabilities (n_rows, m) of the classes `codes`; a code of -1 is passed over.

    Parameters
    ----------
    visit_of : (n_nodes,)
        Memory, filled with -1 before and after.
    n_visits : (n_rows,)
        Written: the number of nodes evaluated.
    """
    nodes, maps, left, right = tree
    kinds, parameters, bound = maps.kinds, maps.parameters, maps.bound
    items, reaches = reached
    items[0], reaches[0] = 0, 0.0
    for i in range(len(codes)):
        visit = 0
        for j in range(codes.shape[1]):
            if codes[i, j] < 0:
                continue
            number = 0
            for step in range(paths.offsets[codes[i, j]], paths.offsets[codes[i, j] + 1]):
                k = paths.nodes[step]
                if visit_of[k] < 0:
                    s = node_score(rows, nodes, i, k, number, visit, (left[k] >= 0, right[k] >= 0), room)
                    if len(kinds) > 0:
                        s = min(max(s, -bound), bound)
                        is_affine = kinds[k] == AFFINE
                        s = parameters[k, 0] * s + parameters[k, 1] if is_affine else mapped(maps, k, s)
                    likelier = reaches[number] + log_likelier(s)
                    items[2 * visit + 1], items[2 * visit + 2] = left[k], right[k]
                    reaches[2 * visit + 1] = likelier + min(s, 0.0)
                    reaches[2 * visit + 2] = likelier - max(s, 0.0)
                    visit_of[k] = visit
                    visit += 1
                number = 2 * visit_of[k] + (1 if paths.goes_left[step] else 2)
            log_proba[i, j] = reaches[number]
        n_visits[i] = visit
        for number in range(2 * visit + 1):
            if items[number] >= 0:
                visit_of[items[number]] = -1
