"""Agreement of our numbers with the paper's, in its standard deviations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from experiments.reproduce.tables import Cell, ResultTable, Row

#: Cells at most so many of the paper's standard deviations apart agree.
LIMIT = 2.0


@dataclass(frozen=True)
class Compared:
    """One cell that the paper has a number for, and where it stands."""

    metric: str
    row: Row
    cell: Cell
    difference: float

    @property
    def agrees(self) -> bool:
        """True if ours lies within two of the paper's standard deviations."""
        return abs(self.difference) <= LIMIT


@dataclass(frozen=True)
class Agreement:
    """Comparison of all cells that the paper has a number for.

    Attributes
    ----------
    reading : str
        The reading that the tables were made under.
    compared : tuple of Compared
        All cells of the paper's own datasets that were run.
    """

    reading: str
    compared: tuple[Compared, ...]

    @property
    def exceptions(self) -> list[Compared]:
        """The cells that do not agree, the farthest first."""
        return sorted((each for each in self.compared if not each.agrees), key=lambda c: -abs(c.difference))

    def counts(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Numbers of cells that agree and of all cells, by base learner and dataset of the paper."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for each in self.compared:
            key = each.row.base, each.row.subject.row
            agree, total = found.get(key, (0, 0))
            found[key] = agree + each.agrees, total + 1
        return found


def agreement(tables: Iterable[ResultTable]) -> Agreement:
    """Compare every cell of these tables, made under one reading.

    Stand-ins are left out: the paper has no numbers for them.
    """
    made = list(tables)
    names = {table.reading for table in made}
    if len(names) != 1:
        raise ValueError(f"Agreement is judged for one reading at a time; the tables are of {sorted(names)}.")
    return Agreement(names.pop(), tuple(each for table in made for each in _compared(table)))


def _compared(table: ResultTable) -> Iterator[Compared]:
    for row in table.rows:
        for cell in row.cells:
            if cell.difference is not None:
                yield Compared(table.kind.metric, row, cell, cell.difference)
