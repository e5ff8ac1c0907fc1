"""Contents of the study's page: sentences and tables by name, pictures and a long table as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.pages import markdown
from experiments.study.answers import answers, coverage, omissions
from experiments.study.figures import draw_all
from experiments.study.grids import grids
from experiments.study.long_table import write_csv

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.study.comparisons import Comparisons


def contents(found: Comparisons) -> dict[str, str]:
    """Markdown by the name of its region."""
    tables = {grid.name: markdown.table(grid) for grid in grids(found)}
    return {"answers": answers(found), "omissions": omissions(), "coverage": coverage(found), **tables}


def write_files(found: Comparisons, folder: Path) -> list[Path]:
    """The pictures and the long table, written into a folder; returns what was written."""
    table = folder / "results.csv"
    write_csv(found, table)
    return [*draw_all(found, folder), table]
