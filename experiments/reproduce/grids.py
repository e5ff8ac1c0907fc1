"""Grids of all that a store of the paper's trials shows: tables, agreement, claims, costs."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from experiments.pages.grid import Grid, Line, Words
from experiments.reproduce import readings
from experiments.reproduce.agreement import LIMIT, agreement
from experiments.reproduce.costs import costs
from experiments.reproduce.tables import make_table, printed_mean
from experiments.reproduce.verdicts import judged
from experiments.running.trial import BASE_LEARNERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from experiments.reproduce.agreement import Agreement, Compared
    from experiments.reproduce.claims import Verdict
    from experiments.reproduce.costs import Cost
    from experiments.reproduce.tables import Aggregate, Cell, ResultTable, Row, TableKind
    from experiments.reproduce.trial import PaperResult
    from experiments.reproduce.verdicts import Judged

METRIC_TITLES = {"nll": "NLL", "accuracy": "accuracy"}
READING_TITLES = {
    readings.AS_PRINTED: "read as printed",
    readings.AS_NUMBERS_IMPLY: "read as its numbers imply",
}


def grids(results: Sequence[PaperResult], kinds: Sequence[TableKind], readings: Sequence[str]) -> list[Grid]:
    """The tables, how well they agree with the paper, whether its claims hold, and what it all cost.

    Parameters
    ----------
    results : sequence of PaperResult
        As `PaperStore.rows` gives them.
    kinds : sequence of TableKind
        Tables of the paper to make.
    readings : sequence of str
        Under which readings; one without results gives nothing.
    """
    return [grid for reading in readings for grid in _of_reading(results, kinds, reading)]


def _of_reading(results: Sequence[PaperResult], kinds: Sequence[TableKind], reading: str) -> Iterator[Grid]:
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


def grid_of_table(table: ResultTable) -> Grid:
    """One of the paper's tables: for every row of it ours, the paper's, and the difference."""
    kind = table.kind
    columns = [readings.SCHEMES[scheme].title for scheme in kind.schemes]
    by_base = groupby(table.rows, key=lambda row: row.base)
    lines = [
        line
        for base, rows in by_base
        for number, row in enumerate(rows)
        for line in _lines_of(row, BASE_LEARNERS[base] if number == 0 else "")
    ]
    return Grid(
        f"{kind.name}/{table.reading}",
        f"{kind.caption}, the paper {READING_TITLES[table.reading]}: mean (standard deviation) over the "
        "runs that all schemes of a row have, ours beside the paper's; "
        "differences in the paper's standard deviations; the best of a row in bold.",
        ("Base learner", "Dataset", "", *columns),
        3,
        tuple(lines),
    )


def _lines_of(row: Row, base: str) -> Iterator[Line]:
    other, nothing = row.subject.stands_in, Words("")
    title, ours = Words(row.subject.title), Words(f"ours, {_runs(*row.runs)}")
    yield Line((Words(base), title, ours, *map(_ours, row.cells)), rule_above=True)
    theirs = Words(f"paper, on {row.subject.row}" if other else "paper", muted=other)
    yield Line((nothing, nothing, theirs, *(_paper(cell, muted=other) for cell in row.cells)))
    if not other:
        yield Line((nothing, nothing, Words("difference"), *map(_difference, row.cells)))


def _runs(fewest: int, most: int) -> str:
    """Number of runs behind the cells of a row, in words."""
    if fewest < most:
        return f"{fewest} to {most} runs"
    return "1 run" if most == 1 else f"{most} runs"


def _ours(cell: Cell) -> Words:
    return Words("–" if cell.ours is None else mean_and_sd(cell.ours), bold=cell.best)


def _paper(cell: Cell, *, muted: bool) -> Words:
    return Words(f"{cell.paper.mean_text} ({cell.paper.sd:.2f})", bold=cell.paper_best, muted=muted)


def _difference(cell: Cell) -> Words:
    return Words("–" if cell.difference is None else signed(cell.difference))


def mean_and_sd(aggregate: Aggregate) -> str:
    """As the paper prints it; a single result has no standard deviation."""
    sd = "–" if aggregate.sd is None else f"{aggregate.sd:.2f}"
    return f"{printed_mean(aggregate.mean)} ({sd})"


def signed(number: float) -> str:
    """A difference with its sign, as people write it.

    Examples
    --------
    >>> from experiments.reproduce.grids import signed
    >>> signed(1.25), signed(-0.31), signed(-0.01)
    ('+1.2', '−0.3', '0.0')
    """
    text = f"{number:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def grid_of_agreement(found: Agreement) -> Grid:
    """Numbers of cells that agree, by base learner and dataset."""
    counts = found.counts()
    datasets = list(dict.fromkeys(dataset for _, dataset in counts))
    bases = list(dict.fromkeys(base for base, _ in counts))
    lines = []
    for base in bases:
        own = [counts.get((base, dataset)) for dataset in datasets]
        total = sum(each[0] for each in own if each), sum(each[1] for each in own if each)
        words = (Words("–" if each is None else f"{each[0]} of {each[1]}") for each in (*own, total))
        lines.append(Line((Words(BASE_LEARNERS[base]), *words)))
    return Grid(
        f"agreement/{found.reading}",
        f"Cells within {LIMIT:.0f} of the paper's standard deviations, the paper "
        f"{READING_TITLES[found.reading]}.",
        ("Base learner", *datasets, "all"),
        1,
        tuple(lines),
    )


def grid_of_exceptions(found: Agreement) -> Grid:
    """The cells that do not agree, the farthest first."""
    return Grid(
        f"exceptions/{found.reading}",
        f"Cells more than {LIMIT:.0f} of the paper's standard deviations apart, the paper "
        f"{READING_TITLES[found.reading]}.",
        ("Metric", "Base learner", "Dataset", "Scheme", "ours", "paper", "difference"),
        4,
        tuple(_exception(each) for each in found.exceptions),
    )


def _exception(each: Compared) -> Line:
    labels = (
        METRIC_TITLES[each.metric],
        BASE_LEARNERS[each.row.base],
        each.row.subject.row,
        readings.SCHEMES[each.cell.paper.scheme].title,
    )
    ours, paper = Words(_ours(each.cell).text), Words(_paper(each.cell, muted=False).text)
    return Line((*map(Words, labels), ours, paper, Words(signed(each.difference))))


def grid_of_claims(reading: str, claims: Sequence[Judged]) -> Grid:
    """The paper's claims, and whether they hold for its numbers and for ours."""
    lines = [Line((Words(each.claim.words), *_verdict(each.paper), *_verdict(each.ours))) for each in claims]
    return Grid(
        f"claims/{reading}",
        f"What the paper claims, judged by its own means and by ours, the paper {READING_TITLES[reading]}.",
        ("Claim", "paper", "by its numbers", "ours", "by our numbers"),
        5,
        tuple(lines),
    )


def _verdict(verdict: Verdict) -> tuple[Words, Words]:
    holds = {True: "holds", False: "does not hold", None: "–"}[verdict.holds]
    return Words(holds, bold=verdict.holds is False), Words(verdict.evidence)


def grid_of_costs(reading: str, found: Sequence[Cost]) -> Grid:
    """Trials, sizes, time and memory by dataset and base learner."""
    return Grid(
        f"costs/{reading}",
        f"What was run, the paper {READING_TITLES[reading]}: trials of all schemes, sizes, mean processor "
        "time of a trial, and the most memory one held.",
        ("Dataset", "Base learner", *_COSTS),
        2,
        tuple(_cost(each) for each in found),
    )


_COSTS = ("trials", "training rows", "test rows", "classes", "features", "seconds", "MB")


def _cost(cost: Cost) -> Line:
    sizes = cost.largest.n_train, cost.largest.n_test, cost.largest.n_classes, cost.largest.n_features
    numbers = [f"{number:,}" for number in (cost.n, *sizes)]
    numbers += [f"{cost.seconds:.3g}" if cost.seconds < 100 else f"{cost.seconds:,.0f}"]
    numbers += [f"{cost.megabytes:,.0f}"]
    return Line((Words(cost.subject.title), Words(BASE_LEARNERS[cost.base]), *map(Words, numbers)))
