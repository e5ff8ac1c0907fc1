"""The page and the figure of the boosting race, from its stored results."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from benchmarks.race import RESULTS, report

Result = dict[str, Any]

TEXT = """
# Boosted trees by the number of classes

Nested dichotomies of boosted trees (`HistGradientBoostClassifier` at the nodes, its defaults) against flat
boosting, which grows one tree per class and round: LightGBM, XGBoost (one tree per class; multi-output
trees), CatBoost and scikit-learn's `HistGradientBoostingClassifier`, with their default parameters;
*searched* is the best of three stated settings on a fifth of the training rows, fitted again on all of
them (`benchmarks/boosting_race.py`; only the last fit is timed). By default our estimators also train three
folds and choose calibrators (*calibrated*); in the other lines that is switched off, because the peers have
none. *Four trees* is an ensemble with `n_estimators=4` instead of ten. One thread, processor seconds, every
model in a process of its own, on a busy machine; kernels are compiled beforehand. A run, search and
prediction included, that needs more than {limit} s of processor time is stopped and reported so, ours too.
Models that are not listed for a dataset have not been run on it.

**Not run yet**: the searched settings, most of our calibrated lines, CatBoost, LightGBM on more than 26
kanji, and the peers on more than 200 classes. So the peers are at their defaults, and tuned ones may do
better. LightGBM on omniglot-100 and scikit-learn on letter were run on another day.

Memory is the growth of the peak during fit and prediction, size that of the model in a file (ours: its own
format; others: pickle). *NLL, scaled* is after temperature scaling, each half of the test rows with the
temperature of the other half (extreme where a half has no errors: kanji_fonts-26 has few test rows).

Our defaults were chosen on rows held out from the training rows of letter, optdigits, omniglot and
kanji_fonts (of the latter two, of classes that are only in the largest problems here) and on a table of
another seed. The test rows of this race were not looked at for that; an earlier choice of the shares of rows
and features had used a part of optdigits' test rows.

Generated data: *table* has 20 numbers, a tenth of them missing, and 10 columns of 5 to 200 categories;
*covtype-like* has 10 numbers, 44 indicators and 7 classes of the sizes of covtype. On these and on *nhcd* and
*optdigits* every fourth row is for testing; omniglot holds out drawers, kanji_fonts fonts.

The fastest peer to fit, and how many times as long it takes as ours; NLL of the best peer that was run
(in brackets, that of the fastest):
"""

HEADER = [
    "data", "classes", "rows x features", "model", "fit, s", "predict, s", "memory, MiB", "size, MiB",
    "NLL", "NLL, scaled", "accuracy",
]  # fmt: skip

#: Data of which there are many numbers of classes.
FAMILY = "kanji_fonts"
COLOURS = {
    "ours, one tree": "#0b6e4f",
    "ours, four trees": "#21a179",
    "LightGBM": "#c8553d",
    "XGBoost": "#f28f3b",
}
_FIGURE = "../figures/boosting_race.svg"


def write_page(done: list[Result]) -> None:
    """Write ``docs/benchmarks/boosting_race.md`` and ``docs/figures/boosting_race.svg``."""
    known = {each["data"]: each for each in done if "fit" in each}
    rows = [_row(each, known[each["data"]]) for each in sorted(done, key=lambda e: _place(e, known))]
    limit = max((each["limit"] for each in done if "limit" in each), default=180)
    text = f"{TEXT.strip().format(limit=limit)}\n\n{_ratios(done)}\n\n{_slopes(done)}\n\n"
    text += f"![Time and NLL by the number of classes]({_FIGURE})\n"
    report("boosting_race", text, HEADER, rows, save=True)
    draw(done)


def _place(each: Result, known: dict[str, Result]) -> tuple[int, str]:
    return known[each["data"]]["classes"], each["data"]


def _row(each: Result, same_data: Result) -> list[object]:
    shape = f"{same_data['rows']:,} x {same_data['features']:,}"
    begin: list[object] = [each["data"], f"{same_data['classes']:,}", shape]
    if "fit" not in each:
        why = f"over {each['limit']} s" if "limit" in each else each["error"]
        return [*begin, each["model"], why, *[""] * 6]
    times = [f"{each[name]:.2f}" for name in ("fit", "predict")]
    sizes = [f"{each[name]:.1f}" for name in ("memory", "size")]
    scores = [f"{each[name]:.3f}" for name in ("nll", "scaled", "accuracy")]
    return [*begin, each["model"], *times, *sizes, *scores]


def _ratios(done: list[Result]) -> str:
    """One line for each dataset: ours against the fastest and the best peer."""
    of_ours = [f"{name}: {what}" for name in ("one tree", "four trees") for what in ("fit", "predict", "NLL")]
    header = ["data", "classes", "fastest peer", "peers' NLL", *of_ours]
    lines = [f"| {' | '.join(each)} |" for each in (header, ["---"] * len(header))]
    for data in dict.fromkeys(each["data"] for each in sorted(done, key=lambda e: e.get("classes", 0))):
        runs = {each["model"]: each for each in done if each["data"] == data and "fit" in each}
        peers = [each for name, each in runs.items() if not name.startswith("ours")]
        if not peers or "ours, one tree" not in runs:
            continue
        fastest, best = (min(peers, key=itemgetter(by)) for by in ("fit", "nll"))
        nll = f"{best['nll']:.3f} ({fastest['nll']:.3f})"
        cells = [data, f"{fastest['classes']:,}", fastest["model"], nll]
        for name in ("ours, one tree", "ours, four trees"):
            cells += _against(runs.get(name), fastest, min(each["predict"] for each in peers))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _against(mine: Result | None, peer: Result, quickest: float) -> list[str]:
    if mine is None:
        return [""] * 3
    times = peer["fit"] / mine["fit"], quickest / mine["predict"]
    return [*(f"{ratio:.1f}x" for ratio in times), f"{mine['nll']:.3f}"]


def _slopes(done: list[Result]) -> str:
    """Slope of the time to fit per row against the number of classes, in logarithms."""
    found = []
    for name in COLOURS:
        runs = _curve(done, name)
        if len(runs) > 1:
            classes, time = (np.log([e[0] for e in runs]), np.log([e[1] / e[3] for e in runs]))
            found.append(f"{name} {np.polyfit(classes, time, 1)[0]:.2f} ({len(runs)} points)")
    return (
        f"Slope of the time to fit a row against the number of classes, both in logarithms, on {FAMILY}: "
        f"{'; '.join(found)}. One tree per class and round would be 1, the depth of a tree close to 0."
    )


def _curve(done: list[Result], name: str) -> list[tuple[int, float, float, int]]:
    runs = (e for e in done if e["model"] == name and e["data"].startswith(FAMILY) and "fit" in e)
    return sorted((e["classes"], e["fit"], e["nll"], e["rows"]) for e in runs)


def draw(done: list[Result]) -> None:
    """Draw time to fit and NLL against the number of classes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "boosting race"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name, colour in COLOURS.items():
        runs = _curve(done, name)
        if runs:
            classes, fit, nll, _ = zip(*runs, strict=True)
            axes[0].loglog(classes, fit, marker="o", color=colour, label=name)
            axes[1].loglog(classes, nll, marker="o", color=colour)
        for each in done:
            if each["model"] == name and each["data"].startswith(FAMILY) and "limit" in each:
                stopped = int(each["data"].split("-")[1])
                axes[0].plot(stopped, each["limit"], marker="x", color=colour)
    is_stopped = any("limit" in each for each in done)
    title = "one thread; x: stopped at the limit" if is_stopped else "one thread"
    axes[0].set(xlabel="classes", ylabel="processor seconds to fit", title=title)
    axes[1].set(xlabel="classes", ylabel="NLL of test rows", title="printed kanji, unseen fonts")
    axes[0].legend(frameon=False)
    for panel in axes:
        panel.grid(alpha=0.3)
        panel.title.set_fontsize(9)
    figure.savefig(RESULTS.parent / "figures" / "boosting_race.svg", metadata={"Date": None})
