"""``dichotomies warm-up``: compile kernels ahead of time, for the build step of a container."""

import os
from pathlib import Path
from typing import Annotated

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence, print_json
from dichotomies.cli.settings import SettingsError, check_name


@in_a_sentence
def warm_up(
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder to keep the kernels in; set NUMBA_CACHE_DIR to it where they are used."),
    ] = None,
    learner: Annotated[
        list[str] | None, typer.Option(help="Learner to compile for; may be repeated. Default: all.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Compile what training and predicting need, and keep it on disk."""
    if cache is not None:
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"The folder {cache} cannot be made ({error.strerror}).") from error
        os.environ["NUMBA_CACHE_DIR"] = str(cache)
        import numba

        vars(numba.config)["CACHE_DIR"] = str(cache)  # numba may have been imported before
    from dichotomies._kernels.dispatch import folder
    from dichotomies.estimators import warm_up as warming

    for name in learner or ():
        check_name("learner", name, [*warming.LEARNERS])
    found = {}
    for name, compiled in warming.warm_up(learner or list(warming.LEARNERS)):
        found[name] = compiled
        if not json:
            print(f"{name}: {len(compiled)} kernels compiled")
    if json:
        print_json({"compiled": found, "folder": folder()})
    else:
        print(f"Kept in {folder()}.")
