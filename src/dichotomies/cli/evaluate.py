"""``dichotomies evaluate`` and ``report``: metrics of a model on a file, in batches of rows or as a page."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dichotomies._common.atomic_files import check_place
from dichotomies.cli import options
from dichotomies.cli.data_options import Source, batch_rows, check_not_read, label_of, load_model
from dichotomies.cli.failures import in_a_sentence, plural, print_json, size_of, tell

if TYPE_CHECKING:
    from dichotomies.metrics import Evaluation
    from dichotomies.tables import TableFile, TableModel


@in_a_sentence
def evaluate(
    *,
    model: options.Model,
    label: options.Label = None,
    weight: options.Weight = None,
    top_k: Annotated[
        list[int],
        typer.Option("--top-k", "-k", min=1, help="Accuracy of the k best labels; may be repeated."),
    ] = [5],  # noqa: B006 - typer makes a new list
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples of the intervals.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
    jobs: options.Jobs = None,
    trust: options.Trust = None,
    json: options.Json = False,
    source: Source,
) -> None:
    """Measure the quality of the probabilities on rows that the model was not fitted to.

    Every metric has a confidence interval. Rows with labels unknown to the model are left out and counted.
    Rows are read in batches.
    """
    fitted = load_model(model, jobs, trust)
    file = source.opened()
    truth = read_truth(fitted, file, label_of(file, label, fitted.label), weight)
    settings = {"top_k": top_k, "confidence_level": confidence, "n_resamples": resamples}
    found = evaluated(fitted, file, truth, first_id=source.first_id, random_state=seed, **settings)
    if json:
        print_json(_document(found, truth))
    else:
        print(found)
        if truth.n_unknown:
            print(_about_unknown(found, truth))


@dataclass(frozen=True)
class Truth:
    """The labels of all rows of a file."""

    codes: Any
    weight: Any
    unknown: list[Any]

    @property
    def known(self) -> Any:
        """Mask of the rows whose label is a class of the model."""
        return self.codes >= 0

    @property
    def n_unknown(self) -> int:
        """Number of rows with unknown labels."""
        return int((~self.known).sum())


def read_truth(model: "TableModel", file: "TableFile", label: str, weight: str | None = None) -> Truth:
    """Read the labels of a file, without its features."""
    from dichotomies.tables import Columns, TableFileError

    codes: list[Any] = []
    weights: list[Any] = []
    unknown: set[Any] = set()
    for batch in file.batches(Columns(label=label, features=(), weight=weight)):
        codes.append(model.codes(batch.labels))
        weights.append(batch.weight)
        unknown.update(batch.labels[codes[-1] < 0].tolist())
    truth = Truth(
        np.concatenate(codes), None if weight is None else np.concatenate(weights), sorted(unknown, key=str)
    )
    if not truth.known.any():
        from dichotomies.tables.errors import listing

        raise TableFileError(
            f"The model knows none of the labels in {file.path} ({listing(map(repr, truth.unknown))}); its "
            f"own are {listing(map(repr, model.classes_.tolist()))}."
        )
    return truth


def evaluated(
    model: "TableModel", file: "TableFile", truth: Truth, *, first_id: int | None = None, **settings: Any
) -> "Evaluation":
    """Compute all metrics on the rows with known labels."""
    from dichotomies.metrics import Evaluation

    return Evaluation.from_chunks(
        model.classes_[truth.codes[truth.known]],
        _log_proba(model, file, truth.known, first_id),
        labels=model.classes_,
        sample_weight=None if truth.weight is None else truth.weight[truth.known],
        is_log=True,
        **settings,
    )


def _log_proba(model: "TableModel", file: "TableFile", known: Any, first_id: int | None) -> Iterator[Any]:
    for batch in file.batches(model.columns(first_id=first_id), batch_rows(len(model.classes_))):
        wanted = np.flatnonzero(known[batch.first_row : batch.first_row + len(batch)])
        if len(wanted):
            yield model.predict_log_proba(batch if len(wanted) == len(batch) else batch.rows(wanted))


def _accuracy_of_all(found: "Evaluation", truth: Truth) -> float:
    """Return the accuracy with rows of unknown labels counted as mistakes."""
    weight = np.ones(len(truth.codes)) if truth.weight is None else truth.weight
    return float(found.metrics["accuracy"] * weight[truth.known].sum() / weight.sum())


def _about_unknown(found: "Evaluation", truth: Truth) -> str:
    from dichotomies.tables.errors import listing

    return (
        f"left out: {plural(truth.n_unknown, 'row')} with {plural(len(truth.unknown), 'label')} that the "
        f"model does not know ({listing(map(repr, truth.unknown))}); with these as mistakes the accuracy is "
        f"{_accuracy_of_all(found, truth):.4f}"
    )


def _document(found: "Evaluation", truth: Truth) -> dict[str, Any]:
    metrics = {
        name: {"estimate": estimate, "lower": lower, "upper": upper}
        for name, (estimate, lower, upper) in found.intervals.items()
    }
    return {
        "rows": len(found.facts),
        "classes": len(found.labels),
        "confidence_level": found.confidence_level,
        "metrics": metrics,
        "unknown_rows": truth.n_unknown,
        "unknown_labels": truth.unknown,
        "accuracy_with_unknown_as_mistakes": _accuracy_of_all(found, truth),
    }


@in_a_sentence
def report(
    *,
    model: options.Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    label: options.Label = None,
    weight: options.Weight = None,
    examples: Annotated[
        str | None,
        typer.Option(help="A column that names rows on the page, beside mistakes.", show_default=False),
    ] = None,
    jobs: options.Jobs = None,
    trust: options.Trust = None,
    json: options.Json = False,
    source: Source,
) -> None:
    """Write an HTML page on the quality of the probabilities, which opens offline.

    Use rows that the model was not fitted to; they must fit into memory.
    """
    from dichotomies.report import make

    check_place(output)
    check_not_read(output, source.data, model)
    fitted = load_model(model, jobs, trust)
    file = source.opened()
    name = label_of(file, label, fitted.label)
    truth = read_truth(fitted, file, name)
    known = np.flatnonzero(truth.known)
    columns = fitted.columns(weight=weight, id=examples, first_id=source.first_id)
    table = file.read(replace(columns, id_option="--examples")).rows(known)
    with fitted.columns_in_order():
        page = make(
            fitted.classifier,
            fitted.matrix(table),
            fitted.classes_[truth.codes[known]],
            sample_weight=table.weight,
            examples=None if table.ids is None else table.ids.tolist(),
        )
    page.save(output)
    if truth.n_unknown:
        tell(f"left out: {plural(truth.n_unknown, 'row')} with labels that the model does not know")
    if json:
        document = {"report": str(output), "rows": len(known), "unknown_rows": truth.n_unknown}
        print_json(document | {"headline": page.content["headline"]})
    else:
        print(page.content["headline"])
        print(f"{plural(len(known), 'row')}; the page is {output} ({size_of(output.stat().st_size)})")
