"""Draws docs/figures/architecture.svg: the calls between rooms of the package, traced while it works.

``python -m docs.figures.architecture``
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import dichotomies
from dichotomies import NestedDichotomyClassifier

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(dichotomies.__file__).parent
#: Rooms with their places: column and row.
ROOMS = {
    "estimators": (1.0, 4),
    "training": (0.45, 3),
    "inference": (1.55, 3),
    "structures": (0.0, 2),
    "learners": (1.0, 2),
    "calibrators": (2.0, 2),
    "rows": (0.45, 1),
    "tree": (1.55, 1),
    "_kernels": (1.0, 0),
}
WIDTH, HEIGHT = 0.84, 0.58
COLOURS = {"fit": "#1f6feb", "predict_proba": "#d1601f"}


def room(frame: Any) -> str | None:
    """Return the room of a frame, skipping rooms that are not drawn."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            name = path.relative_to(PACKAGE).parts[0]
            if name in ROOMS:
                return name
        frame = frame.f_back
    return None


def edges(call: Callable[[], Any]) -> set[tuple[str, str]]:
    """Return the pairs of rooms of which one calls the other during a call."""
    found: set[tuple[str, str]] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            callee = path.relative_to(PACKAGE).parts[0]
            caller = room(frame.f_back)
            # a call upwards is a callback of the room above
            if callee in ROOMS and caller is not None and caller != callee and _is_above(caller, callee):
                found.add((caller, callee))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def _is_above(caller: str, callee: str) -> bool:
    return ROOMS[caller][1] >= ROOMS[callee][1]


def draw(by_call: dict[str, set[tuple[str, str]]]) -> None:
    """Draw the rooms with the first line of their docstrings, and an arrow for each pair."""
    mpl.rcParams.update({"svg.hashsalt": "dichotomies", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(figsize=(9.5, 6.8))
    for number, (call, pairs) in enumerate(by_call.items()):
        for caller, callee in sorted(pairs):
            _arrow(axes, caller, callee, COLOURS[call], (number - 0.5) * 0.09)
        axes.plot([], [], color=COLOURS[call], label=f"calls during {call}")
    for name, (x, y) in ROOMS.items():
        line = (import_module(f"dichotomies.{name}").__doc__ or "").partition("\n")[0]
        axes.text(x, y + 0.14, f"{name}/", ha="center", va="center", weight="bold")
        axes.text(x, y - 0.09, _wrapped(line), ha="center", va="center", size=6.5)
        box = plt.Rectangle(
            (x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, fc="white", ec="#555555", zorder=2
        )
        axes.add_patch(box)
    for text in axes.texts:
        text.set_zorder(3)
    axes.set(xlim=(-0.5, 2.5), ylim=(-0.4, 4.4))
    axes.axis("off")
    axes.legend(loc="upper left", frameon=False)
    target = Path(__file__).with_name("architecture.svg")
    figure.savefig(target, bbox_inches="tight", metadata={"Date": None})


def _arrow(axes: Any, caller: str, callee: str, colour: str, shift: float) -> None:
    (x0, y0), (x1, y1) = ROOMS[caller], ROOMS[callee]
    up = 1 if y1 > y0 else -1 if y1 < y0 else 0
    start = (x0 + shift, y0 + up * HEIGHT / 2) if up else (x0 + (WIDTH / 2) * (1 if x1 > x0 else -1), y0)
    end = (
        (x1 + shift, y1 - up * HEIGHT / 2) if up else (x1 - (WIDTH / 2) * (1 if x1 > x0 else -1), y1 + shift)
    )
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.1, "alpha": 0.8, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=style, zorder=1)


def _wrapped(line: str, width: int = 38) -> str:
    words, lines = line.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def main() -> None:
    """Trace fit and predict_proba, and draw."""
    X, y = load_digits(return_X_y=True)
    clf = NestedDichotomyClassifier(internal_calibration="platt", random_state=0).fit(X / 16, y)
    draw(
        {"fit": edges(lambda: clf.fit(X / 16, y)), "predict_proba": edges(lambda: clf.predict_proba(X / 16))}
    )


if __name__ == "__main__":
    main()
