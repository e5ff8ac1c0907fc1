"""``dichotomies show``: what is in a model file."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.inputs import load_model
from dichotomies.cli.printing import plural, print_json, size_of

if TYPE_CHECKING:
    from dichotomies.table_files import TableModel

EXAMPLE = "Example: dichotomies show titles.model"


@in_a_sentence
def show(
    model: options.Model,
    lines: Annotated[int, typer.Option(min=1, help="Lines of the drawing of the tree, at most.")] = 30,
    trust: options.Trust = None,
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read where errors are said
) -> None:
    """Show what a model file holds: what it reads, its classes, how it was trained, its tree."""
    fitted = load_model(model, trusted=trust)
    facts = _facts(fitted, model)
    if json:
        print_json(facts | {"labels": fitted.classes_})
        return
    for name, value in facts.items():
        if value:
            print(f"{name}: {value if isinstance(value, str) else _in_words(name, value)}")
    tree = getattr(fitted.classifier, "tree_", None)
    if tree is not None:
        print(tree.draw(max_lines=lines))


def _facts(model: "TableModel", path: Path) -> dict[str, Any]:
    classifier = model.classifier
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "classes": len(model.classes_),
        "features": model.n_features,
        "columns": None if model.features is None else list(model.features),
        "text": {each.column: len(each.terms) for each in model.text},
        "label": model.label,
        "classifier": " ".join(repr(classifier).split()),
        "learner": getattr(classifier, "learner_", None),
        "written_by": _writer(path),
    }


def _in_words(name: str, value: Any) -> str:
    from dichotomies.table_files.errors import listing

    if name == "bytes":
        return size_of(value)
    if name == "text":
        return listing(f"{column} ({plural(terms, 'term')})" for column, terms in value.items())
    if name == "written_by":
        return listing(f"{library} {version}" for library, version in value.items())
    return listing(value) if isinstance(value, list) else f"{value:,}"


def _writer(path: Path) -> dict[str, str]:
    """The versions of the libraries that wrote the file, which the file says of itself."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        document = json_format.loads(file.metadata()["dichotomies"])
    return dict(document.get("written by", {}))
