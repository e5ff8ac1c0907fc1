"""Grids printed for a terminal, and as Markdown, LaTeX, HTML and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.pages import html, json, latex, markdown, terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.pages.grid import Grid

#: From grids to text, by the name of the format.
RENDERERS: dict[str, Callable[[Sequence[Grid]], str]] = {
    "terminal": terminal.render,
    "markdown": markdown.render,
    "latex": latex.render,
    "html": html.render,
    "json": json.render,
}
