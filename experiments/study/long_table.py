"""All of the study in one long table, as a CSV file."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from dichotomies._common.atomic_files import replaced_when_done
from experiments.study.comparisons import Key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from experiments.study.comparisons import Comparisons

_MEANS = (
    *("nll", "accuracy", "top5_accuracy", "ece", "brier", "mean_depth", "max_depth"),
    *("grow_seconds", "fit_seconds", "predict_seconds"),
)


def write_csv(found: Comparisons, path: Path) -> None:
    """One line for each dataset, base learner, structure and calibration: means over the repeats.

    The last columns are relative to random trees, in the same repeats, and to the same tree uncalibrated.
    """
    header = (
        *Key._fields,
        "repeats",
        *_MEANS,
        "nll_to_random",
        "fit_seconds_to_random",
        "nll_to_uncalibrated",
    )
    with replaced_when_done(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([*_line(found, key)] for key in found.combinations())


def _line(found: Comparisons, key: Key) -> Iterator[str]:
    yield from key
    yield str(len(found.results(key)))
    yield from (_rounded(found.mean(key, name)) for name in _MEANS)
    yield from (_rounded(found.to_random(key, name)) for name in ("nll", "fit_seconds"))
    yield _rounded(found.relative(key, key._replace(calibration="none")))


def _rounded(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
