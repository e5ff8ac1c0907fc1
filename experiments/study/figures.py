"""The study's pictures, drawn from its results alone."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from dichotomies.plots.style import AFTER, BEFORE, COLOURS, GREY, MARKERS, PALE, matplotlib, tidy
from experiments.running.trial import BASE_LEARNERS
from experiments.study.classifiers import REFERENCE
from experiments.study.comparisons import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from experiments.study.comparisons import Comparisons

#: Colours and markers of the calibrations.
_LOOKS = dict(zip(("internal", "external", "both"), zip(COLOURS, MARKERS, strict=True), strict=False))
_STATES = {
    "none": (BEFORE, -0.17, "before calibration"),
    "both": (AFTER, 0.17, "calibrated inside and outside"),
}


def draw_all(found: Comparisons, folder: Path) -> list[Path]:
    """Draw every picture into a folder, as SVG; the same results give the same files."""
    pyplot = matplotlib("pyplot")
    drawn = []
    with pyplot.rc_context({"svg.hashsalt": "dichotomies", "font.size": 8}):
        for name, draw in PICTURES.items():
            figure = draw(found)
            drawn.append(folder / f"{name}.svg")
            figure.savefig(drawn[-1], metadata={"Date": None})
            pyplot.close(figure)
    return drawn


def structures(found: Comparisons) -> Any:
    """NLL relative to random trees: a row for each structure, a dot for each dataset."""
    order = sorted(found.structures, key=lambda each: _typical_ratio(found, each), reverse=True)
    figure, panels = _panels(found, (3.0, 0.24 * len(order) + 1.1), sharey=True)
    for ax, learner in zip(panels, found.learners, strict=True):
        ax.axvline(1, color=GREY, linewidth=0.8, zorder=1)
        for calibration, (colour, shift, title) in _STATES.items():
            _dots(ax, found, learner, calibration, order, colour=colour, shift=shift, label=title)
        _ratio_axes(ax.xaxis)
        ax.set(title=BASE_LEARNERS[learner], xlabel="NLL relative to random trees")
        ax.set_yticks(range(len(order)), order)
        ax.grid(axis="y", color=PALE, linewidth=0.6)
    _legend(figure, panels)
    return figure


def _dots(
    ax: Any,
    found: Comparisons,
    learner: str,
    calibration: str,
    order: Sequence[str],
    *,
    colour: str,
    shift: float,
    label: str,
) -> None:
    for row, structure in enumerate(order):
        ratios = _ratios(found, learner, structure, calibration, "nll")
        if structure == REFERENCE or not ratios:
            continue
        ax.plot(ratios, [row + shift] * len(ratios), "o", color=colour, markersize=2.6, alpha=0.45, zorder=2)
        ax.plot(median(ratios), row + shift, "|", color=colour, markersize=8, markeredgewidth=1.8, zorder=3)
    ax.plot([], [], "o", color=colour, markersize=3.5, label=label)


def depths(found: Comparisons) -> Any:
    """The change of the NLL by each calibration against the mean depth of the tree."""
    figure, panels = _panels(found, (3.0, 2.8), sharey=True)
    for ax, learner in zip(panels, found.learners, strict=True):
        ax.axhline(1, color=GREY, linewidth=0.8, zorder=1)
        for calibration, (colour, marker) in _LOOKS.items():
            keys = [
                key
                for key in found.combinations()
                if (key.learner, key.calibration) == (learner, calibration)
            ]
            points = [
                (found.mean(key, "mean_depth"), gain) for key in keys if (gain := found.gain(key)) is not None
            ]
            ax.plot(
                [depth for depth, _ in points],
                [1 + gain for _, gain in points],
                marker,
                color=colour,
                markersize=3,
                alpha=0.55,
                markeredgewidth=0,
                label=calibration,
            )
        _ratio_axes(ax.xaxis, ax.yaxis)
        ax.set(title=BASE_LEARNERS[learner], xlabel="mean depth of the tree's leaves")
    panels[0].set_ylabel("NLL relative to the same tree,\nuncalibrated")
    _legend(figure, panels)
    return figure


def times(found: Comparisons) -> Any:
    """NLL against time to fit, both relative to random trees; a point for each structure."""
    figure, panels = _panels(found, (3.4, 3.6), sharey=True)
    for ax, learner in zip(panels, found.learners, strict=True):
        points = {
            structure: _typical(found, learner, structure, "both")
            for structure in found.structures
            if _ratios(found, learner, structure, "both", "nll")
        }
        leading = _leading(points)
        for structure, point in points.items():
            ax.plot(*point, "o", color=AFTER if structure in leading else GREY, markersize=4, zorder=3)
        ax.set_xmargin(0.3)
        _ratio_axes(ax.xaxis, ax.yaxis)
        _label(ax, points, leading)
        ax.set(title=BASE_LEARNERS[learner], xlabel="time to fit relative to random trees")
    panels[0].set_ylabel("NLL relative to random trees")
    return figure


def _leading(points: Mapping[str, tuple[float, float]]) -> set[str]:
    """Pareto front: those that no other is at once faster and better than."""
    return {
        name
        for name, (seconds, nll) in points.items()
        if not any(other[0] < seconds and other[1] < nll for other in points.values())
    }


def _label(ax: Any, points: Mapping[str, tuple[float, float]], leading: set[str]) -> None:
    """Write the names beside the points, from the lowest up, each above those that it would cover."""
    to_axes = ax.transData + ax.transAxes.inverted()
    written: list[tuple[float, float]] = []
    for name, point in sorted(points.items(), key=lambda each: each[1][1]):
        x, y = to_axes.transform(point)
        for x_other, y_other in written:
            if abs(x - x_other) < 0.3 and y < y_other + 0.036:
                y = y_other + 0.036
        written.append((x, y))
        colour = "black" if name in leading else GREY
        ax.text(x + 0.02, y, name, transform=ax.transAxes, fontsize=6, va="center", color=colour)


def _typical(found: Comparisons, learner: str, structure: str, calibration: str) -> tuple[float, float]:
    """Median over the datasets of time and NLL relative to random trees."""
    seconds, nll = (
        median(_ratios(found, learner, structure, calibration, metric)) for metric in ("fit_seconds", "nll")
    )
    return seconds, nll


def _ratios(found: Comparisons, learner: str, structure: str, calibration: str, metric: str) -> list[float]:
    keys = (Key(dataset, learner, structure, calibration) for dataset in found.datasets)
    return [ratio for key in keys if (ratio := found.to_random(key, metric)) is not None]


def _typical_ratio(found: Comparisons, structure: str) -> float:
    """By which structures are ordered: the median NLL relative to random trees, over everything."""
    keys = (key for key in found.combinations() if key.structure == structure)
    ratios = [ratio for key in keys if (ratio := found.to_random(key)) is not None]
    return median(ratios) if ratios else 1.0


def _panels(found: Comparisons, size: tuple[float, float], **shared: Any) -> tuple[Any, Any]:
    """A figure with one pair of axes for each base learner, `size` inches each."""
    n = len(found.learners)
    figure, axes = matplotlib("pyplot").subplots(
        1, n, figsize=(size[0] * n + 0.8, size[1]), squeeze=False, layout="constrained", **shared
    )
    for ax in axes[0]:
        tidy(ax)
    return figure, axes[0]


def _ratio_axes(*axes: Any) -> None:
    """Logarithmic axes with a few plain numbers, from what is drawn already."""
    ticker = matplotlib("ticker")
    for axis in axes:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
        low, high = axis.get_view_interval()
        subs = (1, 1.5, 2, 3, 5, 7) if high / low < 12 else (1, 2, 5) if high / low < 300 else (1,)
        axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=20))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_locator(ticker.NullLocator())


def _legend(figure: Any, panels: Any) -> None:
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


#: By the name of the file.
PICTURES: dict[str, Callable[[Comparisons], Any]] = {
    "structures": structures,
    "depths": depths,
    "times": times,
}
