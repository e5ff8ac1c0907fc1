"""The paper's own numbers: every cell of its four tables of results."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: The paper's datasets in the order of its tables; cross-validated above the line, split once below it.
CROSS_VALIDATED = ("optdigits", "micromass", "letter", "devanagari")
SPLIT_ONCE = ("RCV1", "sector", "ALOI", "ILSVR2010", "ODP-5K")


@dataclass(frozen=True)
class PaperCell:
    """One cell: mean and standard deviation as printed.

    Attributes
    ----------
    metric : str
        "nll" or "accuracy".
    base, dataset, scheme : str
        Base learner, dataset and calibration scheme.
    mean, sd : float
        The printed numbers; a standard deviation of 0.00 means less than 0.005.
    mean_text : str
        The mean as printed, with its number of digits.
    """

    metric: str
    base: str
    dataset: str
    scheme: str
    mean: float
    sd: float
    mean_text: str

    def difference(self, mean: float) -> float:
        """Difference of another mean to this one, in units of the standard deviation.

        Examples
        --------
        >>> from experiments.reproduce.paper import PaperCell
        >>> cell = PaperCell("nll", "naive_bayes", "letter", "none", 2.338, 0.08, "2.338")
        >>> round(cell.difference(2.298), 2)
        -0.5
        """
        return (mean - self.mean) / max(self.sd, 0.005)  # printed with two digits: 0.00 is below 0.005


@cache
def paper_cells() -> dict[tuple[str, str, str, str], PaperCell]:
    """All 252 cells by (metric, base, dataset, scheme).

    Examples
    --------
    >>> from experiments.reproduce.paper import paper_cells
    >>> paper_cells()["nll", "naive_bayes", "letter", "none"].mean
    2.338
    """
    text = Path(__file__).with_name("paper_tables.csv").read_text(encoding="utf-8")
    cells = [
        PaperCell(
            row["metric"],
            row["base"],
            row["dataset"],
            row["scheme"],
            float(row["mean"]),
            float(row["sd"]),
            row["mean"],
        )
        for row in csv.DictReader(text.splitlines())
    ]
    return {(cell.metric, cell.base, cell.dataset, cell.scheme): cell for cell in cells}
