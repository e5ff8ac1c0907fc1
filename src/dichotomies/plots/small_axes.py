"""Text in small axes: smaller, and inside the part of the figure that the axes were given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dichotomies.plots.style import font_size, matplotlib

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
