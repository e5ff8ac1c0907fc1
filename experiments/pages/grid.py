"""Grids of words: tables ready to be printed, the same for a terminal, Markdown, LaTeX and HTML."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """Text and style of one cell of a grid."""

    text: str
    bold: bool = False
    muted: bool = False


@dataclass(frozen=True)
class Line:
    """One line of a grid; `rule_above` sets it off from the line before."""

    words: tuple[Words, ...]
    rule_above: bool = False


@dataclass(frozen=True)
class Grid:
    """A table ready to be printed.

    Attributes
    ----------
    name : str
        Name in pages and files.
    caption : str
        Caption of the table.
    header : tuple of str
        Titles of the columns.
    n_labels : int
        Number of columns, from the left, that hold labels and not numbers.
    lines : tuple of Line
    """

    name: str
    caption: str
    header: tuple[str, ...]
    n_labels: int
    lines: tuple[Line, ...]
