"""The command-line application and its commands."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

#: Name of the command: its module and function, in the order in which they are listed.
COMMANDS = {
    "fit": ("fit", "fit"),
    "fit-batches": ("fit_batches", "fit_batches"),
    "predict": ("predict", "predict"),
    "evaluate": ("evaluate", "evaluate"),
    "report": ("report", "report"),
    "compare": ("compare", "compare"),
    "show": ("show", "show"),
    "list": ("names", "list_registered"),
    "warm-up": ("warm_up", "warm_up"),
    "demo": ("demo", "demo"),
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


for name, (module, function) in COMMANDS.items():
    code = import_module(f"dichotomies.cli.{module}")
    app.command(name, cls=_Command, epilog=getattr(code, "EXAMPLE", None))(getattr(code, function))
