"""``dichotomies warm-up``: compile kernels ahead of time, for the build step of a container."""

import os
from pathlib import Path
from typing import Annotated

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.printing import print_json
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
    from dichotomies._kernels.cache import folders
    from dichotomies.estimators import warm_up as warming

    for name in learner or ():
        check_name("learner", name, [*warming.LEARNERS])
    found = {}
    for name, compiled in warming.warm_up(learner or list(warming.LEARNERS)):
        found[name] = {each.kernel: round(each.seconds, 2) for each in compiled}
        if not json:
            took = sum(found[name].values())
            print(f"{name}: {len(compiled)} kernels compiled in {took:.0f} s")
    place = str(folders()[0])
    if json:
        print_json({"compiled": found, "folder": place})
    else:
        print(f"Kept in {place}.")
