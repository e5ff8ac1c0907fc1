"""Grids as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from experiments.pages.grid import Grid, Words


def render(grids: Sequence[Grid]) -> str:
    """All grids, each under its caption."""
    return "\n".join(f"{grid.caption}\n\n{table(grid)}" for grid in grids)


def table(grid: Grid) -> str:
    """One grid without its caption."""
    if not grid.lines:
        return "None.\n"
    rule = ["---" if column < grid.n_labels else "---:" for column in range(len(grid.header))]
    lines = [grid.header, rule, *([_marked(words) for words in line.words] for line in grid.lines)]
    return "".join(f"{_joined(line)}\n" for line in lines)


def _joined(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _marked(words: Words) -> str:
    text = words.text.replace("|", "\\|")
    if words.bold:
        text = f"**{text}**"
    return f"<sub>{text}</sub>" if words.muted and text else text
