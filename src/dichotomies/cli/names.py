"""``dichotomies list``: the registered names."""

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.printing import print_json
from dichotomies.cli.settings import summaries as estimators

EXAMPLE = "Example: dichotomies list"


@in_a_sentence
def list_registered(json: options.Json = False) -> None:
    """List the names that options accept."""
    from dichotomies.calibrators.binary import BINARY
    from dichotomies.calibrators.multiclass import MULTICLASS
    from dichotomies.inference.pooling import POOLINGS
    from dichotomies.learners import LEARNERS
    from dichotomies.structures import STRUCTURES

    summaries = {
        "estimator": estimators(),
        "structure": STRUCTURES.summaries(),
        "learner": LEARNERS.summaries(),
        "internal": BINARY.summaries(),
        "external": MULTICLASS.summaries(),
        "pooling": {name: str(pool.__doc__).partition("\n")[0] for name, pool in POOLINGS.items()},
    }
    if json:
        print_json(summaries)
        return
    titles = {
        "estimator": "estimator: the base learner at the nodes",
        "structure": "structure: how a tree is grown",
        "learner": "learner: how all nodes are trained (default: found by the estimator)",
        "internal": "internal, internal_calibration: how every node is calibrated",
        "external": "external, external_calibration: how a tree or a pool is calibrated",
        "pooling": "pooling: which mean of several trees' probabilities is taken",
    }
    from rich.console import Console
    from rich.table import Table

    for kind, named in summaries.items():
        table = Table("name", "what it is", title=f"\n{titles[kind]}", title_justify="left")
        for name, summary in named.items():
            table.add_row(name, summary)
        Console().print(table)
