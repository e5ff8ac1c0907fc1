"""The datasets behind the rows of the paper's tables, and those that stand in where one cannot be had."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.reproduce.paper import CROSS_VALIDATED, SPLIT_ONCE


@dataclass(frozen=True)
class PaperDataset:
    """A dataset in the place of one of the paper's.

    Attributes
    ----------
    dataset : str
        Its name in `experiments.datasets`.
    row : str
        The paper's dataset whose row it takes.
    stands_in : bool
        True for a dataset other than the paper's.
    """

    dataset: str
    row: str
    stands_in: bool = False

    @property
    def cross_validated(self) -> bool:
        """True if the paper cross-validated this row, rather than split it once."""
        return self.row in CROSS_VALIDATED

    @property
    def title(self) -> str:
        """Title in tables."""
        return f"{self.dataset}, standing in for {self.row}" if self.stands_in else self.row

    def names(self) -> dict[str, str]:
        """Names for machines."""
        return {"dataset": self.dataset, "row": self.row}


_STAND_INS = {
    "devanagari": "nhcd",
    "RCV1": "reuters52",
    "sector": "clinc150",
    "ALOI": "omniglot",
    "ILSVR2010": "kanji_fonts",
    "ODP-5K": "wordnet",
}


def _subjects() -> tuple[PaperDataset, ...]:
    found = []
    for row in (*CROSS_VALIDATED, *SPLIT_ONCE):
        found.append(PaperDataset(row.lower().replace("-", ""), row))
        if row in _STAND_INS:
            found.append(PaperDataset(_STAND_INS[row], row, stands_in=True))
    return tuple(found)


#: All of them, in the order of the paper's rows, each stand-in after the dataset it stands in for.
PAPER_DATASETS = _subjects()
#: Datasets that are run by default: the paper's own where they are small and public, else stand-ins.
USUAL = tuple(each for each in PAPER_DATASETS if each.stands_in or each.row not in _STAND_INS)


def paper_dataset(dataset: str) -> PaperDataset:
    """The subject of this dataset.

    Examples
    --------
    >>> from experiments.reproduce.stand_ins import paper_dataset
    >>> paper_dataset("nhcd").title
    'nhcd, standing in for devanagari'
    """
    for subject in PAPER_DATASETS:
        if subject.dataset == dataset:
            return subject
    raise ValueError(
        f"No row of the paper's tables is for the dataset {dataset!r}; choose from "
        f"{', '.join(each.dataset for each in PAPER_DATASETS)}."
    )
