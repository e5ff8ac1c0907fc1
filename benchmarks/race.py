"""Timing two sides of a claim against each other, and writing down what came out."""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy
import sklearn

import dichotomies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESULTS = Path(__file__).parent.parent / "docs" / "benchmarks"


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> float:
    """How many times as long `theirs` takes: the median over pairs run one right after the other."""
    return median(seconds(theirs) / seconds(ours) for _ in range(repeats))


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long a call takes; where it runs in one thread, `time.process_time` leaves out other processes."""
    begun = clock()
    work()
    return clock() - begun


def arguments(description: str | None, repeats: int = 5, **switches: str) -> argparse.Namespace:
    """The options every benchmark has, and switches of its own with their help."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=repeats, help="pairs of runs; the median is reported")
    parser.add_argument("--save", action="store_true", help=f"write the table to docs/{RESULTS.name}/")
    for name, text in switches.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    return parser.parse_args()


class Store(dict[str, list[str]]):
    """Rows of a table by their titles, in a file beside the page: an interrupted benchmark goes on from it.

    Parameters
    ----------
    name : str
        Name of the benchmark.
    """

    def __init__(self, name: str) -> None:
        self.path = RESULTS / f"{name}.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        super().__init__({title: row for title, *row in map(json.loads, lines)})

    def keep(self, title: str, row: Sequence[str]) -> None:
        """Print a row, and write it to the file."""
        print(title, *row, sep=" | ", flush=True)
        self[title] = list(row)
        text = "".join(json.dumps([each, *self[each]]) + "\n" for each in self)
        self.path.write_text(text)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [" | ".join(map(str, row)) for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def report(
    name: str, text: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, save: bool
) -> None:
    """Print a Markdown table and, if asked, keep it as a page of the documentation."""
    table = markdown_table(header, rows)
    print(table)
    if save:
        versions = f"Python {platform.python_version()}, numpy {numpy.__version__}, "
        versions += f"scikit-learn {sklearn.__version__}, dichotomies {dichotomies.__version__}"
        command = f"Made by `python -m benchmarks.{name} --save` ({versions})."
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.md").write_text(f"{text.strip()}\n\n{table}\n\n{command}\n")
