"""Grids as one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.pages.grid import Grid, Line, Words

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper's tables, reproduced</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font-family: system-ui, sans-serif; margin: 2rem; }}
table {{ border-collapse: collapse; margin-bottom: 2rem; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; padding-bottom: 0.5rem; max-width: 60rem; }}
th, td {{ padding: 0.1rem 0.7rem; text-align: right; vertical-align: top; font-weight: normal; }}
td {{ white-space: nowrap; }}
tbody th {{ max-width: 24rem; }}
thead th {{ border-block: 1px solid; font-weight: bold; }}
tbody th, thead th.label {{ text-align: left; }}
tr.apart > * {{ border-top: 1px solid #8884; padding-top: 0.3rem; }}
.muted {{ opacity: 0.55; }}
</style>
</head>
<body>
{tables}</body>
</html>
"""


def render(grids: Sequence[Grid]) -> str:
    """All grids, on one page."""
    return _PAGE.format(tables="".join(map(_table, grids)))


def _table(grid: Grid) -> str:
    titles = "".join(
        f'<th scope="col"{_class("label") if column < grid.n_labels else ""}>{escape(title)}</th>'
        for column, title in enumerate(grid.header)
    )
    body = "".join(_line(line, grid.n_labels) for line in grid.lines)
    return (
        f'<table id="{escape(grid.name)}">\n<caption>{escape(grid.caption)}</caption>\n'
        f"<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"
    )


def _line(line: Line, n_labels: int) -> str:
    cells = "".join(
        _cell(words, "th" if column < n_labels else "td") for column, words in enumerate(line.words)
    )
    return f"<tr{_class('apart') if line.rule_above else ''}>{cells}</tr>\n"


def _cell(words: Words, tag: str) -> str:
    text = f"<b>{escape(words.text)}</b>" if words.bold else escape(words.text)
    return f"<{tag}{_class('muted') if words.muted else ''}>{text}</{tag}>"


def _class(name: str) -> str:
    return f' class="{name}"'
