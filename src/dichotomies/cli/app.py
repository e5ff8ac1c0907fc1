"""The commands."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import dichotomies
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.cli import demo as demonstration
from dichotomies.learners import LEARNERS
from dichotomies.structures import STRUCTURES

app = typer.Typer(
    help="Trustworthy class probabilities when there are many classes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_console = Console()


def _print_version(wanted: bool) -> None:
    if wanted:
        _console.print(f"dichotomies {dichotomies.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    structure: Annotated[str, typer.Option(help="How to grow the tree; see 'dichotomies list'.")] = "random",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tree and of the train/test split.")] = 0,
) -> None:
    """Fit nested dichotomies to handwritten digits, draw the tree and show how good they are."""
    if structure not in STRUCTURES.names():
        raise typer.BadParameter(f"choose from {', '.join(STRUCTURES.names())}", param_hint="--structure")
    demonstration.show(_console, structure, seed)


@app.command("list")
def list_registered() -> None:
    """Show what can be chosen by name."""
    for title, summaries in {
        "structure: how a tree is grown": STRUCTURES.summaries(),
        "learner: how all nodes are trained (default: found by the estimator)": LEARNERS.summaries(),
        "internal_calibration: how every node is calibrated": BINARY.summaries(),
        "external_calibration: how the whole tree is calibrated": MULTICLASS.summaries(),
    }.items():
        table = Table("name", "what it is", title=f"\n{title}", title_justify="left")
        for name, summary in summaries.items():
            table.add_row(name, summary)
        _console.print(table)
