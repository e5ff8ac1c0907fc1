"""``dichotomies show``: the contents of a model file; ``dichotomies list``: the registered names."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dichotomies.cli import options
from dichotomies.cli.data_options import load_model
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.printing import plural, print_json, printable, size_of
from dichotomies.cli.settings import summaries as estimators

if TYPE_CHECKING:
    from dichotomies.tables import TableModel


@in_a_sentence
def show(
    model: options.Model,
    lines: Annotated[int, typer.Option(min=1, help="Lines of the drawing of the tree, at most.")] = 30,
    tree: Annotated[int, typer.Option(min=1, help="Which tree of an ensemble to draw.")] = 1,
    trust: options.Trust = None,
    json: options.Json = False,
) -> None:
    """Show what a model file holds: what it reads, its classes, how it was trained, its tree."""
    fitted = load_model(model, trusted=trust)
    facts, trees = _facts(fitted, model), trees_of(fitted.classifier)
    if tree > max(1, len(trees)):
        said = f"the model has {plural(len(trees), 'tree')}"
        raise typer.BadParameter(f"{said}, counted from 1; there is no tree {tree}", param_hint="--tree")
    if json:
        print_json(facts | {"labels": fitted.classes_})
        return
    for name, value in facts.items():
        if value:
            print(printable(f"{name}: {value if isinstance(value, str) else _in_words(name, value)}"))
    if len(trees) > 1:
        print(f"tree {tree} of {len(trees):,} (--tree draws another):")
    if trees:
        print(printable(trees[tree - 1].draw(max_lines=lines)))


def _facts(model: "TableModel", path: Path) -> dict[str, Any]:
    classifier = model.classifier
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "classes": len(model.classes_),
        "features": model.n_features,
        "columns": None if model.features is None else list(model.features),
        "text": {each.column: len(each.terms) for each in model.text},
        "other_columns": {
            each.column: each.description for each in model.encoders if not hasattr(each, "terms")
        },
        "label": model.label,
        "classifier": " ".join(repr(classifier).split()),
        "learner": getattr(classifier, "learner_", None),
        "structure": getattr(classifier, "structure_", None),
        **facts_of_trees(classifier),
        "pooling": getattr(classifier, "pooling", None),
        "calibration": _calibration(classifier),
        "chosen": _comparison(classifier),
        "written_by": _writer(path),
    }


def _calibration(classifier: Any) -> dict[str, str]:
    """Return the calibration of the nodes (internal) and of the whole (external)."""
    fitted = getattr(classifier, "calibration_", None)
    if fitted is None:
        return {}
    return {"internal": fitted.internal, "external": fitted.external}


def _comparison(classifier: Any) -> str | None:
    """Return the sentence about the choice of the calibration, where it was not given."""
    calibration = getattr(classifier, "calibration_", None)
    return str(calibration) if calibration is not None and calibration.nll else None


def _in_words(name: str, value: Any) -> str:
    from dichotomies.tables.errors import listing

    if name == "bytes":
        return size_of(value)
    if name == "text":
        return listing(f"{column} ({plural(terms, 'term')})" for column, terms in value.items())
    if name == "other_columns":
        return listing(f"{column} ({description})" for column, description in value.items())
    if name in ("written_by", "calibration"):
        return listing(" ".join(pair) for pair in value.items())
    return listing(value) if isinstance(value, list) else f"{value:,}"


def _writer(path: Path) -> dict[str, str]:
    """Return the versions of the libraries that wrote the file, as recorded in it."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        document = json_format.loads(file.metadata()["dichotomies"])
    return dict(document.get("written by", {}))


def trees_of(classifier: Any) -> list[Any]:
    """Return all trees; none if the classifier is not a nested dichotomy or an ensemble of them."""
    if hasattr(classifier, "trees_"):
        return list(classifier.trees_)
    return [classifier.tree_] if hasattr(classifier, "tree_") else []


def facts_of_trees(classifier: Any) -> dict[str, Any]:
    """Return the number of trees, the maximum depth, the number of nodes, and of distinct nodes."""
    trees = trees_of(classifier)
    if not trees:
        return {}
    nodes = sum(tree.n_nodes for tree in trees)
    return {
        "trees": len(trees),
        "depth": max(tree.max_depth for tree in trees),
        "nodes": nodes,
        "different_nodes": getattr(classifier, "n_different_nodes_", nodes),
    }


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
