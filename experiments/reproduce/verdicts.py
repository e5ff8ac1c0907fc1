"""The paper's claims, put to its own numbers and to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from experiments.reproduce.claims import CLAIMS, Claim, PrintedMeans, Verdict
from experiments.reproduce.paper import paper_cells
from experiments.reproduce.tables import aggregates, on_common_splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.reproduce.trial import PaperResult


class Judged(NamedTuple):
    """A claim, and whether it holds for the paper's numbers and for ours."""

    claim: Claim
    paper: Verdict
    ours: Verdict


def judged(reading: str, results: Sequence[PaperResult]) -> list[Judged]:
    """Every claim, judged by the paper's numbers and by our results under one reading.

    Of ours, only results on splits that all schemes of a dataset and base learner have are compared.
    """
    comparable = on_common_splits(results)
    paper = PrintedMeans({key: cell.mean for key, cell in paper_cells().items()})
    ours = PrintedMeans(
        {
            (metric, place.base, place.dataset, place.scheme): aggregate.mean
            for metric in ("nll", "accuracy")
            for place, aggregate in aggregates(comparable, metric).items()
            if place.reading == reading
        }
    )
    return [Judged(claim, claim.judge(paper), claim.judge(ours)) for claim in CLAIMS]
