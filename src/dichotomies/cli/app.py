"""The command-line application and its commands."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

#: Module and function of each command, and an example of its arguments; in the order of the list.
COMMANDS = {
    "fit": ("fit.fit", "titles.csv --label code --text title --output titles.model"),
    "fit-batches": ("fit.fit_batches", "part-*.parquet --label y --estimator logistic --output y.model"),
    "predict": ("predict.predict", "titles.model new.csv --top-k 3 --id number --output predicted.csv"),
    "evaluate": ("evaluate.evaluate", "titles.model test.csv"),
    "report": ("evaluate.report", "titles.model test.csv --examples title --output titles.html"),
    "compare": (
        "compare.compare",
        "titles.csv --label code --text title --config 'plain: external=none' "
        "--config 'sharp: param.C=10 internal=platt'",
    ),
    "show": ("fit.show", "titles.model"),
    "list": ("fit.list_registered", ""),
    "warm-up": ("warm_up.warm_up", "--cache /opt/kernels"),
    "demo": ("demo.demo", "--structure class-balanced"),
}


def _print_version(wanted: bool) -> None:
    if wanted:
        import dichotomies

        print(f"dichotomies {dichotomies.__version__}")
        raise typer.Exit


class _PlainHelp:
    """Mixin of commands whose help shows no type beside --help."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class _Command(_PlainHelp, TyperCommand):
    """One command."""


class _Group(_PlainHelp, TyperGroup):
    """All commands."""


app = typer.Typer(
    cls=_Group,
    help="Trustworthy class probabilities when there are many classes.",
    epilog="Exit codes: 0 done, 1 failed, 2 the command was not understood, 130 interrupted, 143 terminated.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    pass


for name, (place, example) in COMMANDS.items():
    module, _, function = place.partition(".")
    run = getattr(import_module(f"dichotomies.cli.{module}"), function)
    app.command(name, cls=_Command, epilog=f"Example: dichotomies {name} {example}".rstrip())(run)
