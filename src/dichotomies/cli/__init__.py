"""Command-line interface: parses arguments, calls the library, prints results."""

import signal
import sys

_TERMINATED = 128 + 15


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

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that unfinished files are removed
    app()
