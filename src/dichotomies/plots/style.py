"""Shared parts of the plots: matplotlib on demand, colours, axes, text that fits small axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from dichotomies.diagnostics import Reliability

#: Okabe and Ito's colours, distinguishable for colour-blind readers; the darker ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")

BEFORE, AFTER = COLOURS[1], COLOURS[0]
GREY = "#666666"
PALE = "#E4E4E4"

#: Number of predictions below which a bin is drawn as a single point, outside the curve.
MIN_PREDICTIONS = 10

#: Normal quantile of the 95 % bands drawn from standard errors.
Z_95 = 1.959964


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib; raise with installation instructions if it is missing."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'dichotomies[plot]'.") from error


def font_size() -> float:
    """Return the size of text in points."""
    return float(matplotlib("pyplot").rcParams["font.size"])


def axes_or_new(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given axes, or those of a new figure with a size in inches."""
    if ax is not None:
        return ax
    return matplotlib("pyplot").subplots(figsize=size, layout="constrained")[1]


def divided(ax: Any, n_rows: int, n_columns: int, **gridspec: Any) -> Any:
    """Replace one pair of axes by a grid of axes, shape (n_rows, n_columns)."""
    ax.set_axis_off()
    grid = _place_of(ax).subgridspec(n_rows, n_columns, **gridspec)
    return np.array([[ax.figure.add_subplot(grid[i, j]) for j in range(n_columns)] for i in range(n_rows)])


def _place_of(ax: Any) -> Any:
    """Return the part of the figure that axes occupy, also for axes made by ``figure.add_axes``."""
    place = ax.get_subplotspec()
    if place is not None:
        return place
    box = ax.get_position()
    return ax.figure.add_gridspec(1, 1, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1)[0]


def has_layout_engine(figure: Any) -> bool:
    """Return True if a layout engine makes room for labels between axes."""
    return figure.get_layout_engine() is not None


def plain(text: Any) -> str:
    """Escape dollar signs, which would start a formula."""
    return str(text).replace("$", r"\$")


def tidy(ax: Any) -> None:
    """Remove the top and right spines."""
    ax.spines[["top", "right"]].set_visible(False)


def draw_diagonal(ax: Any) -> Any:
    """Draw the diagonal of perfect calibration."""
    return ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)[0]


def draw_curve(ax: Any, curve: Reliability, colour: str, marker: str = "o", **line: Any) -> Any:
    """Draw one reliability curve with its 95 % band; bins with few predictions as single points."""
    lower, upper = curve.interval()
    x, y = curve.mean_score, curve.observed
    solid = curve.count >= MIN_PREDICTIONS
    ax.fill_between(x[solid], lower[solid], upper[solid], color=colour, alpha=0.18, linewidth=0, zorder=2)
    few = (curve.count > 0) & ~solid
    ax.vlines(x[few], lower[few], upper[few], color=colour, alpha=0.2, linewidth=1, zorder=2)
    style = {"marker": marker, "color": colour, "markersize": 3.5, "linewidth": 1.3, "zorder": 3, **line}
    ax.plot(x[few], y[few], **{**style, "linestyle": "none", "markerfacecolor": "white", "alpha": 0.6})
    return ax.plot(x[solid], y[solid], **style)[0]


def unit_square(ax: Any) -> None:
    """Set both axes to 0 to 1, with few ticks."""
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")


def thinned(values: Sequence[int], most: int) -> list[int]:
    """Return at most `most` of the values, with the first and the last, denser at the start."""
    if len(values) <= most:
        return list(values)
    places = np.unique(np.rint(np.geomspace(1, len(values), most)).astype(int)) - 1
    return [values[place] for place in places]


def count_ticks(axis: Any) -> None:
    """Write large numbers with separators of thousands."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def evenly_spaced(stop: int, most: int) -> Any:
    """Return at most `most` evenly spaced integers below `stop`."""
    return np.arange(0, stop, -(-stop // most))


#: Share of a figure that axes usually take; half of the rest is around them.
_USUAL_SHARE, _MARGIN = 0.77, 0.14
_SMALLEST_SCALE, _STEP, _MOST_STEPS = 0.45, 0.88, 14


@contextmanager
def scaled_text(ax: Any, size: tuple[float, float]) -> Iterator[None]:
    """Draw text smaller where `ax` is smaller than in a figure of `size` inches, and keep it inside.

    Titles, axis labels and legends of the axes made in the block are shrunk further until they fit.
    """
    figure, box = ax.figure, ax.get_position()
    width, height = figure.get_size_inches() * (box.width, box.height) / _USUAL_SHARE
    scale = max(_SMALLEST_SCALE, min(1.0, width / size[0], height / size[1]))
    if scale == 1.0:
        yield
        return
    before = set(figure.axes)
    with matplotlib("pyplot").rc_context({"font.size": scale * font_size()}):
        yield
        parts = [part for part in figure.axes if part not in before]
        for part in parts:
            part.tick_params(labelsize="medium", length=3.5 * scale, pad=3.5 * scale)
            for legend in _legends(part):
                legend.set_in_layout(False)  # its width would leave no room for the axes
    figure.draw_without_rendering()
    limits = box.padded(_MARGIN).transformed(figure.transSubfigure)
    for part in parts:
        for title in (part.title, part._left_title, part.xaxis.label, part.yaxis.label):
            _shrink(title, [title], limits)
        for legend in _legends(part):
            _shrink(legend, legend.get_texts(), limits)


def _legends(part: Any) -> list[Any]:
    return [] if part.get_legend() is None else [part.get_legend()]


def _shrink(artist: Any, texts: list[Any], limits: Any) -> None:
    """Make texts smaller until their artist lies within the limits, which end with the figure."""
    whole = artist.figure.bbox
    low, high = max(limits.x0, whole.x0), min(limits.x1, whole.x1)
    bottom, top = max(limits.y0, whole.y0), min(limits.y1, whole.y1)
    for _ in range(_MOST_STEPS):
        box = artist.get_window_extent()
        if box.x0 >= low and box.x1 <= high and box.y0 >= bottom and box.y1 <= top:
            return
        for text in texts:
            text.set_fontsize(_STEP * text.get_fontsize())
