"""Best-first search of sparse nodes: `best_first` with the scores of the nodes in the same loop."""

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.best_first import (
    Heap,
    Ranking,
    Reached,
    SearchedTree,
    log_likelier,
    mapped,
    sift_down,
    sift_up,
)
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.node_scores import Room
from dichotomies._kernels.score_maps import AFFINE


@kernel
def best_first_sparse(  # noqa: C901 - one loop, see below
    rows: Any,
    tree: SearchedTree,
    ranking: Ranking,
    least: float,
    most: int,
    reached: Reached,
    heap: Heap,
    room: Room,
    codes: IntArray,
    log_proba: FloatArray,
    n_visits: IntArray,
) -> None:
    """Do what `best_first` does for sparse nodes, whose scores are computed here as `node_score` does.

    Calling it, or having it inlined, would take the arrays out of their tuples at every visit, which makes
    the search a third slower. The arguments are those of `best_first`.
    """
    nodes, maps, left, right = tree
    kinds, parameters, bound, has_maps = maps.kinds, maps.parameters, maps.bound, len(maps.kinds) > 0
    data, indices, indptr = rows
    intercept, background, offsets, weights, n_left = nodes
    begin, x, first, last, total = room
    one = np.uint64(1)
    ranks, numbers = heap
    items, reaches = reached
    slope, bias, floor = ranking
    is_ranked = floor > -np.inf
    items[0], reaches[0] = 0, 0.0
    for i in range(len(codes)):
        ranks[0], numbers[0] = slope[0] * 0.0 + bias[0], 0
        size, visit, n_found = 1, 0, 0
        while size > 0 and n_found < codes.shape[1] and ranks[0] >= least and visit < most:
            taken = numbers[0]
            k, reach = items[taken], reaches[taken]
            if k < 0:
                codes[i, n_found], log_proba[i, n_found] = ~k, reach
                n_found += 1
                size -= 1
                sift_down(ranks, numbers, items, size, ranks[size], numbers[size])
                continue
            if taken == 0:
                n = begin[0]
                total[0] = 0.0
                for place in range(indptr[i], indptr[i + 1]):
                    j = np.uint64(indices[place])
                    total[0] += data[place]
                    x[n], first[n], last[n] = data[place], offsets[j], offsets[j + one]
                    n += np.uint64(first[n] < last[n])  # no branch: it could not be foreseen
                begin[1] = n
            start, stop = begin[taken], begin[taken + 1]
            score = intercept[k]
            for at in range(start, stop):
                score += x[at] * weights[first[at] + first[at]]
            # entries of the children: on the left they follow the node's own, on the right they are asked for
            m = begin[2 * visit + 1]
            for at in range(start, stop if left[k] >= 0 else start):
                after = first[at] + one
                x[m], first[m], last[m] = x[at], after, after + n_left[after + after - one]
                m += np.uint64(first[m] < last[m])
            begin[2 * visit + 2] = m
            for at in range(start, stop if right[k] >= 0 else start):
                after = first[at] + one
                middle = after + n_left[after + after - one]
                x[m], first[m], last[m] = x[at], middle, last[at]
                m += np.uint64(middle < last[m])
            begin[2 * visit + 3] = m
            s = score + background[k] * total[0]
            if has_maps:
                s = min(max(s, -bound), bound)
                s = parameters[k, 0] * s + parameters[k, 1] if kinds[k] == AFFINE else mapped(maps, k, s)
            likelier = reach + log_likelier(s)
            a, b = 2 * visit + 1, 2 * visit + 2
            items[a], items[b] = left[k], right[k]
            reaches[a], reaches[b] = likelier + min(s, 0.0), likelier - max(s, 0.0)
            rank_a, rank_b = reaches[a], reaches[b]
            if is_ranked:
                rank_a = slope[left[k]] * max(rank_a, floor) + bias[left[k]]
                rank_b = slope[right[k]] * max(rank_b, floor) + bias[right[k]]
            if rank_a < rank_b:
                a, b, rank_a, rank_b = b, a, rank_b, rank_a
            sift_down(ranks, numbers, items, size, rank_a, a)  # the likelier one is often the next
            sift_up(ranks, numbers, items, size, rank_b, b)
            size += 1
            visit += 1
        n_visits[i] = visit
        for empty in range(n_found, codes.shape[1]):
            codes[i, empty], log_proba[i, empty] = -1, -np.inf
