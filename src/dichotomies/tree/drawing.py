"""Text drawing of a class tree, legible with thousands of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dichotomies.tree.class_tree import ClassTree

_NAME_WIDTH = 32
_LIST_WIDTH = 48


def draw(tree: ClassTree, max_lines: int) -> str:
    """Draw the top of the tree, level by level, in at most `max_lines` lines.

    Expanding a node adds two lines, and nodes are numbered in level order, so the expanded nodes are the
    first ``(max_lines - 1) // 2``.
    """
    if max_lines < 1:
        raise ValueError(f"max_lines must be at least 1, got {max_lines}.")
    n_open = (max_lines - 1) // 2
    names = [_clip(" ".join(str(label).split()), _NAME_WIDTH) for label in tree.leaf_labels.tolist()]
    left, right = tree.left.tolist(), tree.right.tolist()
    lines = []
    pending: list[tuple[int, str, str]] = [(0 if tree.n_nodes else ~0, "", "")]
    while pending:
        node, lead, indent = pending.pop()
        if node < 0:
            lines.append(lead + names[~node])
            continue
        start, stop = int(tree.start[node]), int(tree.stop[node])
        text = f"{lead}[{node}] {stop - start} classes"
        if node >= n_open:
            lines.append(f"{text}: {_listing(names[start:stop])}")
            continue
        lines.append(text)
        pending.append((right[node], indent + "└─ ", indent + "   "))
        pending.append((left[node], indent + "├─ ", indent + "│  "))
    return "\n".join(lines)


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _listing(names: list[str]) -> str:
    """Return as many names as fit on a line, always including the last."""
    shown: list[str] = []
    room = _LIST_WIDTH - len(names[-1])
    for name in names[:-1]:
        room -= len(name) + 2
        if room < 0:
            shown.append("…")
            break
        shown.append(name)
    return ", ".join([*shown, names[-1]])
