"""Everything there is to show of a store's results, as grids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dichotomies.experiments.agreement import agreement
from dichotomies.experiments.costs import costs
from dichotomies.experiments.layout import (
    grid_of_agreement,
    grid_of_claims,
    grid_of_costs,
    grid_of_exceptions,
    grid_of_table,
)
from dichotomies.experiments.tables import make_table
from dichotomies.experiments.verdicts import judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dichotomies.experiments.layout import Grid
    from dichotomies.experiments.result import Result
    from dichotomies.experiments.tables import TableKind


def grids(results: Sequence[Result], kinds: Sequence[TableKind], readings: Sequence[str]) -> list[Grid]:
    """The tables, how well they agree with the paper, whether its claims hold, and what it all cost.

    Parameters
    ----------
    results : sequence of Result
        As `Store.rows` gives them.
    kinds : sequence of TableKind
        Which of the paper's tables.
    readings : sequence of str
        Under which readings; one without results gives nothing.
    """
    return [grid for reading in readings for grid in _of_reading(results, kinds, reading)]


def _of_reading(results: Sequence[Result], kinds: Sequence[TableKind], reading: str) -> Iterator[Grid]:
    tables = [table for table in (make_table(kind, reading, results) for kind in kinds) if table.rows]
    if not tables:
        return
    yield from map(grid_of_table, tables)
    found = agreement(tables)
    if found.compared:
        yield grid_of_agreement(found)
        yield grid_of_exceptions(found)
    yield grid_of_claims(reading, judged(reading, results))
    yield grid_of_costs(reading, costs(reading, results))
