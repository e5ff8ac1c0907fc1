"""The study's tables."""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING

from experiments.pages.grid import Grid, Line, Words
from experiments.running.trial import BASE_LEARNERS
from experiments.study.classifiers import CALIBRATIONS, REFERENCE
from experiments.study.comparisons import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from experiments.study.comparisons import Comparisons

#: Cell of something that was not run.
NOTHING = "–"
#: Before and after: what the tables of single datasets show.
SHOWN = ("none", "both")


def grids(found: Comparisons) -> list[Grid]:
    """All tables that there are results for."""
    return [grid for learner in found.learners for grid in _of_learner(found, learner)] + [costs(found)]


def _of_learner(found: Comparisons, learner: str) -> Iterator[Grid]:
    yield gains(found, learner)
    yield from (
        nll(found, learner, calibration) for calibration in SHOWN if calibration in found.calibrations
    )
    yield overview(found, learner)


def gains(found: Comparisons, learner: str) -> Grid:
    """Change of the NLL of each structure by each calibration."""
    calibrated = [each for each in CALIBRATIONS if each != "none"]
    header = ["structure", *(text for each in calibrated for text in (each, "lower in"))]
    return Grid(
        f"gains/{learner}",
        f"NLL after calibration, relative to before: {BASE_LEARNERS[learner]}",
        tuple(header),
        1,
        tuple(
            _line(
                structure, *(cell for each in calibrated for cell in _gain(found, learner, structure, each))
            )
            for structure in _structures(found, learner)
        ),
    )


def _gain(found: Comparisons, learner: str, structure: str, calibration: str) -> tuple[str, str]:
    change = found.change([learner], [structure], calibration)
    if change is None:
        return NOTHING, NOTHING
    return percent(change.median), f"{change.lowered} of {change.datasets}"


def nll(found: Comparisons, learner: str, calibration: str) -> Grid:
    """NLL of each structure on each dataset: of random trees itself, of others relative to it."""
    datasets = [each for each in found.datasets if Key(each, learner, REFERENCE, calibration) in found]
    ranks = found.ranks(learner, calibration)
    lines = []
    for structure in _structures(found, learner):
        cells = [_nll(found, Key(each, learner, structure, calibration)) for each in datasets]
        rank = f"{ranks[structure]:.1f}" if structure in ranks else NOTHING
        lines.append(_line(f"{structure}, NLL" if structure == REFERENCE else structure, *cells, rank))
    return Grid(
        f"nll/{learner}/{calibration}",
        f"NLL relative to random trees: {BASE_LEARNERS[learner]}, calibration: {calibration}",
        ("structure", *datasets, "mean rank"),
        1,
        tuple(lines),
    )


def _nll(found: Comparisons, key: Key) -> str:
    if key not in found:
        return NOTHING
    if key.structure == REFERENCE:
        return f"{found.mean(key, 'nll'):.3f}"
    ratio = found.to_random(key)
    return NOTHING if ratio is None else f"{ratio:.2f}"


def overview(found: Comparisons, learner: str) -> Grid:
    """Accuracy, calibration error, depth and time of each structure, over all datasets."""
    return Grid(
        f"overview/{learner}",
        f"Compared with random trees, over all datasets: {BASE_LEARNERS[learner]}",
        (
            "structure",
            "accuracy, none",
            "accuracy, both",
            "top-5, none",
            "top-5, both",
            "ECE, none",
            "ECE, both",
            "mean depth",
            "fit time, none",
            "fit time, both",
        ),
        1,
        tuple(
            _line(structure, *_overview(found, learner, structure))
            for structure in _structures(found, learner)
        ),
    )


def _overview(found: Comparisons, learner: str, structure: str) -> Iterator[str]:
    for metric in ("accuracy", "top5_accuracy"):
        for keys in _shown(found, learner, structure):
            others = [(key, key._replace(structure=REFERENCE)) for key in keys]
            gaps = [gap for pair in others if (gap := found.difference(*pair, metric)) is not None]
            yield f"{100 * fmean(gaps):+.1f}" if gaps else NOTHING
    for keys in _shown(found, learner, structure):
        yield f"{fmean(found.mean(key, 'ece') for key in keys):.3f}" if keys else NOTHING
    yield _median_ratio(found, _shown(found, learner, structure)[0], "mean_depth")
    for keys in _shown(found, learner, structure):
        yield _median_ratio(found, keys, "fit_seconds")


def _shown(found: Comparisons, learner: str, structure: str) -> list[list[Key]]:
    """Results before calibration, and after it."""
    return [
        [key for each in found.datasets if (key := Key(each, learner, structure, calibration)) in found]
        for calibration in SHOWN
    ]


def _median_ratio(found: Comparisons, keys: Sequence[Key], metric: str) -> str:
    ratios = [ratio for key in keys if (ratio := found.to_random(key, metric)) is not None]
    return f"{median(ratios):.2f}" if ratios else NOTHING


def costs(found: Comparisons) -> Grid:
    """Sizes and processor time of what was run."""
    lines = []
    for dataset in found.datasets:
        for learner in found.learners:
            keys = [key for key in found.combinations() if key[:2] == (dataset, learner)]
            results = [result for key in keys for result in found.results(key)]
            if results:
                first, seconds = results[0], [result.seconds for result in results]
                sizes = (first.n_train, first.n_test, first.n_classes, first.n_features)
                repeats = len({result.trial.repeat for result in results})
                numbers = (len(results), repeats, *sizes)
                lines.append(
                    _line(
                        dataset,
                        BASE_LEARNERS[learner],
                        *(f"{number:,}" for number in numbers),
                        f"{fmean(seconds):.3g}",
                        f"{sum(seconds) / 60:.1f}",
                    )
                )
    return Grid(
        "costs",
        "What was run, with processor time of one thread",
        (
            *("dataset", "base learner", "trials", "repeats", "training rows", "test rows", "classes"),
            *("features", "seconds each", "minutes in all"),
        ),
        2,
        tuple(lines),
    )


def _structures(found: Comparisons, learner: str) -> list[str]:
    present = {key.structure for key in found.combinations() if key.learner == learner}
    return [each for each in found.structures if each in present]


def percent(change: float) -> str:
    """A relative change in words, with a sign.

    Examples
    --------
    >>> from experiments.study.grids import percent
    >>> percent(-0.1234), percent(0.05), percent(0.0)
    ('−12.3 %', '+5.0 %', '0.0 %')
    """
    text = f"{100 * change:+.1f} %"
    return "0.0 %" if float(text[:-2]) == 0 else text.replace("-", "−")


def _line(*texts: str) -> Line:
    return Line(tuple(Words(text) for text in texts))
