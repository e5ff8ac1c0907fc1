"""Grids as LaTeX, ruled as in the paper (package booktabs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from experiments.pages.grid import Grid, Line, Words

#: Characters with a meaning of their own in LaTeX.
_ESCAPES = str.maketrans(
    {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "−": "$-$", "–": "--", "…": r"\ldots{}"},
)
#: Characters of a label that fits on one line.
_LABEL = 40
_NOTE = "% needs \\usepackage{booktabs} and \\usepackage{xcolor}\n"


def render(grids: Sequence[Grid]) -> str:
    """All grids, each a table of its own."""
    return _NOTE + "\n".join(map(_table, grids))


def _table(grid: Grid) -> str:
    columns = "".join(_column(grid, place) for place in range(len(grid.header)))
    body = [text for number, line in enumerate(grid.lines) for text in _line(line, first=number == 0)]
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_escaped(grid.caption)}\label{{tab:{grid.name}}}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _joined(rf"\textbf{{{_escaped(title)}}}" for title in grid.header),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _column(grid: Grid, place: int) -> str:
    """Alignment of a column: numbers centred, labels from the left, sentences in a paragraph."""
    if place >= grid.n_labels:
        return "c"
    longest = max((len(line.words[place].text) for line in grid.lines), default=0)
    return "l" if longest <= _LABEL else "p{0.25\\linewidth}"


def _line(line: Line, *, first: bool) -> list[str]:
    rule = [r"\addlinespace"] if line.rule_above and not first else []
    return [*rule, _joined(map(_marked, line.words))]


def _joined(texts: Iterable[str]) -> str:
    return f"{' & '.join(texts)} \\\\"


def _marked(words: Words) -> str:
    text = _escaped(words.text)
    if words.bold:
        text = rf"\textbf{{{text}}}"
    return rf"\textcolor{{gray}}{{{text}}}" if words.muted and text else text


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
