"""Threads that train one node together.

Every member runs the same kernel on a part of the node's rows, and takes the same decisions. Members meet, at
a barrier, where one needs what others have summed over their rows, and each finds the best splits of a part
of the features. Their number changes no result: sums are of integers, and where splits are nearly tied, every
member compares all of them in the order of one thread.
"""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.node import NODE, copy_split
from dichotomies._kernels.boosting.scan import TIE_TOLERANCE
from dichotomies._kernels.compile import compiled_as, kernel

#: Entries of `Team.board`, each in a line of the cache of its own: members that have arrived at the present
#: meeting; number of meetings that are over; 1 where members are to leave; 1 where they have left; and from
#: `MET` on, a line for each member, with the number of meetings that it has been to.
ARRIVED, MEETINGS, DISSOLVE, LEFT, MET = 0, 16, 32, 48, 64

#: Entries of a line of the cache.
LINE = 16

#: How often a member looks for the end of a meeting before it lets other threads use its processor.
LOOKS = 500

#: Integers that a member may tell the others at a meeting: two for each leaf of a tree.
MOST_TOLD = 512


class Team(NamedTuple):
    """A member of a team, and what members tell one another.

    Attributes
    ----------
    rank, size : int
        Number of the member, of so many.
    board : (MET + size * LINE,)
    told : (2, size, MOST_TOLD)
        Integers told at meetings, by turns, so that none is overwritten before it is read.
    found : (size, 2) of NODE
        The best splits of two nodes among each member's features.
    """

    rank: int
    size: int
    board: IntArray
    told: IntArray
    found: IntArray

    def dissolve(self) -> None:
        """Have all members leave before the next tree, if there is one."""
        self.board[DISSOLVE] = 1

    @property
    def has_left(self) -> bool:
        """True if training was given up: the trees are not complete."""
        return bool(self.board[LEFT])


def teams(size: int) -> list[Team]:
    """Make the members of a team; one member is a thread alone."""
    first = Team(
        rank=0,
        size=size,
        board=np.zeros(MET + size * LINE, dtype=np.int64),
        told=np.zeros((2, size, MOST_TOLD), dtype=np.int64),
        found=np.zeros((size, 2), dtype=NODE),
    )
    return [first._replace(rank=rank) for rank in range(size)]


@kernel(inline=True)
def share(team: Team, n: int) -> tuple[int, int]:
    """Range of a member's part of n pieces of work."""
    return n * team.rank // team.size, n * (team.rank + 1) // team.size


def meet(team: Team) -> None:
    """Wait for all members: what each has written before, all can read afterwards."""
    assert team.size == 1  # without a compiler


@compiled_as(meet)
def _meet(team: Any) -> Any:  # noqa: ARG001 - the same for all types
    from dichotomies._kernels import atomics

    add: Any = atomics.add
    load: Any = atomics.load
    pause: Any = atomics.pause
    give_way: Any = atomics.give_way

    def call(team: Any) -> None:
        if team.size == 1:
            return
        meeting = team.board[MET + team.rank * LINE]
        team.board[MET + team.rank * LINE] = meeting + 1
        if add(team.board, ARRIVED, 1) == team.size - 1:
            team.board[ARRIVED] = 0
            add(team.board, MEETINGS, 1)
            return
        looks = 0
        while load(team.board, MEETINGS) <= meeting:
            looks += 1
            if looks > LOOKS:
                give_way()
            else:
                pause()

    return call


@kernel(inline=True)
def told_now(team: Team) -> Any:
    """What members tell at the next meeting, of shape (size, MOST_TOLD)."""
    return team.told[team.board[MET + team.rank * LINE] & 1]


@kernel
def sums(team: Team, first: Any, second: Any) -> tuple[Any, Any]:
    """Sums of two integers over the members, who meet."""
    told = told_now(team)
    told[team.rank, 0], told[team.rank, 1] = first, second
    meet(team)
    all_first = all_second = np.int64(0)
    for r in range(team.size):
        all_first += told[r, 0]
        all_second += told[r, 1]
    return all_first, all_second


@kernel
def agree(team: Team, nodes: Any, small: int, large: int, n_tried: int) -> bool:
    """Take the best splits of two nodes that any member has found among its features.

    Splits of nearly the same score are compared one after the other by one thread, and which of them is taken
    depends on what they are compared with.

    Returns
    -------
    bool
        True if members' splits are so near that one thread might have taken another one: `n_tried` features
        with scores that are each tied with the next one's may lie between them.
    """
    if team.size == 1:
        return False
    copy_split(nodes[small], team.found[team.rank, 0])
    copy_split(nodes[large], team.found[team.rank, 1])
    meet(team)
    is_near, nearly = False, 1.0 - 8 * (n_tried + 1) * TIE_TOLERANCE
    for side in range(2):
        node, best, second = nodes[small] if side == 0 else nodes[large], -1, -1.0
        for r in range(team.size):
            found = team.found[r, side]
            if found["feature"] >= 0 and (best < 0 or found["score"] > team.found[best, side]["score"]):
                second = team.found[best, side]["score"] if best >= 0 else second
                best = r
            elif found["feature"] >= 0:
                second = max(second, found["score"])
        if best >= 0:
            copy_split(team.found[best, side], node)
            is_near = is_near or second >= nearly * node["score"]
    return is_near
