"""Command-line interface: parses arguments, calls the library, prints results."""

import sys


def main() -> None:
    """Run the command line; exit with installation instructions if its extra is missing."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(
            f"The command line needs the extra 'cli' ({error.name} is missing). "
            "Install it with: pip install 'dichotomies[cli]'"
        )
    from dichotomies.cli.app import app

    app()
