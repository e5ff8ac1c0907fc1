"""The paper's tables, made of results: plain data, ours beside the paper's."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from experiments.reproduce import readings
from experiments.reproduce.paper import PaperCell, paper_cells
from experiments.reproduce.stand_ins import PAPER_DATASETS, PaperDataset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from experiments.reproduce.trial import PaperResult


@dataclass(frozen=True)
class TableKind:
    """One of the paper's tables of results.

    Attributes
    ----------
    name : str
        Name in options, pages and files.
    metric : str
        "nll", of which less is better, or "accuracy", of which more is.
    bases : tuple of str
        The base learners in it.
    caption : str
        Caption of the table.
    """

    name: str
    metric: str
    bases: tuple[str, ...]
    caption: str

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes that are its columns."""
        return readings.schemes_of(self.bases[0])


_WELL, _POORLY = ("logistic_regression",), ("naive_bayes", "boosted_trees")
#: The paper's four tables of results, in its order, by name.
TABLES = {
    kind.name: kind
    for kind in (
        TableKind("logistic-nll", "nll", _WELL, "NLL with logistic regression"),
        TableKind("logistic-accuracy", "accuracy", _WELL, "Accuracy with logistic regression"),
        TableKind("poor-nll", "nll", _POORLY, "NLL with poorly calibrated base learners"),
        TableKind("poor-accuracy", "accuracy", _POORLY, "Accuracy with poorly calibrated base learners"),
    )
}


class Place(NamedTuple):
    """Properties that the results behind one cell share."""

    reading: str
    base: str
    dataset: str
    scheme: str


@dataclass(frozen=True)
class Aggregate:
    """Mean and standard deviation over folds, repeats and trees; no deviation of a single one."""

    n: int
    mean: float
    sd: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Aggregate:
        """The aggregate of these values, the deviation that of a sample (n - 1)."""
        return cls(len(values), fmean(values), stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class Cell:
    """One cell: ours, the paper's, and how far apart.

    Attributes
    ----------
    ours : Aggregate or None
        None where nothing was run.
    paper : PaperCell
        The paper's; of the dataset that is stood in for, where the row is of a stand-in.
    difference : float or None
        Ours less the paper's, in the paper's standard deviations; None for stand-ins.
    best, paper_best : bool
        True for the best of a row as printed, among ours and among the paper's.
    """

    ours: Aggregate | None
    paper: PaperCell
    difference: float | None
    best: bool
    paper_best: bool


@dataclass(frozen=True)
class Row:
    """One row: a base learner on a dataset, under all schemes of the table."""

    base: str
    subject: PaperDataset
    cells: tuple[Cell, ...]

    @property
    def runs(self) -> tuple[int, int]:
        """Least and greatest number of results behind a cell; they are equal where the cells compare."""
        counts = [cell.ours.n for cell in self.cells if cell.ours is not None]
        return min(counts), max(counts)


@dataclass(frozen=True)
class ResultTable:
    """One of the paper's tables under one reading; rows only for what was run."""

    kind: TableKind
    reading: str
    rows: tuple[Row, ...]


def aggregates(results: Iterable[PaperResult], metric: str) -> dict[Place, Aggregate]:
    """Mean and standard deviation of a metric wherever there are results.

    Parameters
    ----------
    results : iterable of PaperResult
    metric : str
        A column of `PaperResult`.
    """
    values = defaultdict(list)
    for result in results:
        trial = result.trial
        place = Place(trial.reading, trial.base, trial.dataset, trial.scheme)
        values[place].append(getattr(result, metric))
    return {place: Aggregate.of(each) for place, each in values.items()}


def on_common_splits(results: Iterable[PaperResult]) -> list[PaperResult]:
    """The results that compare: on splits where every scheme of the same row, of those run at all, has one.

    Schemes share splits and trees, so that means over the same splits differ by the scheme alone.

    Parameters
    ----------
    results : iterable of PaperResult
        A row is made of those that share reading, base learner and dataset.
    """
    rows = defaultdict(list)
    for result in results:
        trial = result.trial
        rows[trial.reading, trial.base, trial.dataset].append(result)
    return [result for row in rows.values() for result in _in_common(row)]


def _in_common(row: Sequence[PaperResult]) -> list[PaperResult]:
    schemes_on = defaultdict(set)
    for result in row:
        schemes_on[_split(result)].add(result.trial.scheme)
    all_schemes = {result.trial.scheme for result in row}
    return [result for result in row if schemes_on[_split(result)] == all_schemes]


def _split(result: PaperResult) -> tuple[int, int, int]:
    return result.trial.repeat, result.trial.fold, result.trial.seed


def make_table(kind: TableKind, reading: str, results: Sequence[PaperResult]) -> ResultTable:
    """One table under one reading.

    The cells of a row are means over the splits that all its schemes have. Where there is none, they are
    means over all splits, and none is called the best.

    Parameters
    ----------
    kind : TableKind
        One of `TABLES`.
    reading : str
        One of `readings.READINGS`; results of the other are left out.
    results : sequence of PaperResult
        As `PaperStore.rows` gives them.
    """
    common, all_splits = (aggregates(each, kind.metric) for each in (on_common_splits(results), results))
    rows = (
        _row(kind, reading, base, subject, common) or _row(kind, reading, base, subject, all_splits, False)
        for base in kind.bases
        for subject in PAPER_DATASETS
    )
    return ResultTable(kind, reading, tuple(row for row in rows if row is not None))


def _row(
    kind: TableKind,
    reading: str,
    base: str,
    subject: PaperDataset,
    ours: Mapping[Place, Aggregate],
    comparable: bool = True,
) -> Row | None:
    found = [ours.get(Place(reading, base, subject.dataset, scheme)) for scheme in kind.schemes]
    if not any(each is not None for each in found):
        return None
    printed = [paper_cells()[kind.metric, base, subject.row, scheme] for scheme in kind.schemes]
    texts = [None if each is None else printed_mean(each.mean) for each in found]
    best = _best(texts, kind.metric) if comparable else [False] * len(found)
    paper_best = _best([each.mean_text for each in printed], kind.metric)
    cells = (
        Cell(own, theirs, _difference(own, theirs, subject), *flags)
        for own, theirs, *flags in zip(found, printed, best, paper_best, strict=True)
    )
    return Row(base, subject, tuple(cells))


def _difference(ours: Aggregate | None, paper: PaperCell, subject: PaperDataset) -> float | None:
    return None if ours is None or subject.stands_in else paper.difference(ours.mean)


def _best(texts: Sequence[str | None], metric: str) -> list[bool]:
    """Mark the best of a row as printed, so that ties for the reader are ties here."""
    values = [float(text) for text in texts if text is not None]
    best = min(values) if metric == "nll" else max(values)
    return [text is not None and float(text) == best for text in texts]


def printed_mean(mean: float) -> str:
    """A mean with as many digits as the paper prints.

    Examples
    --------
    >>> from experiments.reproduce.tables import printed_mean
    >>> printed_mean(0.8412), printed_mean(13.1412)
    ('0.841', '13.14')
    """
    text = f"{mean:.3f}"
    return text if float(text) < 10 else f"{mean:.2f}"
