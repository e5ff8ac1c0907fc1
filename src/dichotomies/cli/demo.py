"""``dichotomies demo``: nested dichotomies of handwritten digits."""

from typing import Annotated

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence

EXAMPLE = "Example: dichotomies demo --structure class-balanced"


@in_a_sentence
def demo(
    structure: Annotated[str, typer.Option(help="How to grow the tree; see 'dichotomies list'.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tree and of the train/test split.")] = 0,
    debug: options.Debug = False,  # noqa: ARG001 - read by the error handler
) -> None:
    """Fit nested dichotomies to handwritten digits, draw the tree and show how good they are."""
    from rich.console import Console

    from dichotomies.cli.demonstration import show
    from dichotomies.structures import STRUCTURES

    if structure not in STRUCTURES.names():
        raise typer.BadParameter(f"choose from {', '.join(STRUCTURES.names())}", param_hint="--structure")
    show(Console(), structure, seed)
