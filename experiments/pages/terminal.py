"""Grids for a terminal."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.pages.grid import Grid, Words

#: Wide enough for six schemes, each on one line; and where they just fit, the labels on several.
_WIDTH, _LEAST_WIDTH = 160, 132


def render(grids: Sequence[Grid], *, colour: bool = False, width: int = _WIDTH) -> str:
    """All grids, each under its caption.

    Parameters
    ----------
    grids : sequence of Grid
    colour : bool, default=False
        Mark bold and muted words by escape sequences.
    width : int, default=160
        Characters in a line; narrower terminals fold the lines themselves.
    """
    page = StringIO()
    console = Console(
        file=page,
        width=max(width, _LEAST_WIDTH),
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    for grid in grids:
        console.print(_table(grid))
    return page.getvalue()


def _table(grid: Grid) -> Table:
    table = Table(title=f"\n{grid.caption}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column, title in enumerate(grid.header):
        is_label = column < grid.n_labels
        table.add_column(title, justify="left" if is_label else "right", no_wrap=not is_label)
    if not grid.lines:
        table.add_row("none")
    for number, line in enumerate(grid.lines):
        if line.rule_above and number:
            table.add_row()
        table.add_row(*map(_styled, line.words))
    return table


def _styled(words: Words) -> Text:
    return Text(words.text, style=" ".join(["bold"] * words.bold + ["dim"] * words.muted))
