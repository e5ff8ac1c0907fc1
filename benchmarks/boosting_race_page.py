"""The page and the figure of the boosting race, from its stored results."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.boosting_race_models import NAMES
from benchmarks.race import RESULTS, markdown_table, report

if TYPE_CHECKING:
    from collections.abc import Iterator

Result = dict[str, Any]

TEXT = """
# Boosted trees by the number of classes

Nested dichotomies of boosted trees (`HistGradientBoostClassifier` at the nodes, its defaults) against flat
boosting: LightGBM, XGBoost (one tree per class and round; or multi-output trees), CatBoost and scikit-learn's
`HistGradientBoostingClassifier`. Peers have their default parameters, or, *searched*, the best of three
settings on a fifth of the training rows, fitted again on all of them: the default, three times the rounds
(for XGBoost with half the steps), and larger trees of drawn rows and features
(`benchmarks/boosting_race_models.py`; only the last fit is timed). By default our estimators also train folds
and choose calibrators (*calibrated*); in the other lines that is switched off, because the peers have none.
Ensembles have ten members by default; *four trees* is `n_estimators=4`.

One thread, processor seconds, every model in a process of its own, on a busy machine; kernels are compiled
beforehand. A run that needs more processor time than its limit is stopped: the table says at how many
seconds. The limits were 60 or 120 s, three times that for a search, and 300 s for XGBoost, the fastest peer,
on 400 and more classes, and for ours. A model that was stopped is not started with more classes of the same
data, nor is a search where its default was stopped, or where four times the default's time, the least that a
search can take, is over the limit; the table says so, and marks models that have not been run.

Machines differ: *measured* is the day. Earlier runs are from a machine on which the same fits took about 1.7
times as long. On 100 to 400 classes, ours and XGBoost with its defaults were run on the same
day.

Prediction is timed on the test rows repeated to 4,000 or more, by the mean of several calls, and given per
set of test rows: neither side answers row by row. *Coarse*: timed earlier, by the fastest of single calls of
less than 0.1 s, each of which may be read as 4 ms too short.
Memory is the growth of the peak during fit and prediction, size that of the model in a file (ours: its own
format; others: pickle). *NLL, scaled* is after temperature scaling, each half of the test rows with the
temperature of the other half (extreme where a half has no errors: kanji_fonts-26 has few test rows).

Our defaults were chosen on rows held out from the training rows of letter, optdigits, omniglot and
kanji_fonts (of the latter two, of classes that are only in the largest problems here) and on generated data
of other seeds. The test rows of this race were not looked at for that; an earlier choice of the shares of
rows and features had used a part of optdigits' test rows.

Generated data: *table* has 20 numbers, a tenth of them missing, and 10 columns of 5 to 200 categories;
*covtype-like* has 10 numbers, 44 indicators and 7 classes of the sizes of covtype. On these and on *nhcd* and
*optdigits* every fourth row is for testing; omniglot holds out drawers, kanji_fonts fonts.

## Time

How many times as long as ours the fastest peer takes to fit, and the quickest peer to predict, which may be
another one; in brackets, the same peer as for the fit. NLL of the best peer (in brackets, of the fastest to
fit). Peers with a higher NLL than that of equal probabilities are left out here and in the figure: LightGBM's
defaults diverge on 200 and 400 classes. Multi-output XGBoost has few trees, which makes it quick to predict
and slow to fit.
"""

AT_EQUAL_NLL = """
## Time at equal NLL

The peer with the lowest NLL, and the fastest of our models to fit whose NLL is at most 2 % higher; where
there is none, our lowest NLL:
"""

HEADER = [
    "data", "classes", "rows x features", "model", "fit, s", "predict, s", "memory, MiB", "size, MiB",
    "NLL", "NLL, scaled", "accuracy", "measured",
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
    absent = {(data, model) for data in known for model in NAMES} - {(e["data"], e["model"]) for e in done}
    every = [*done, *({"data": data, "model": model} for data, model in absent)]
    listed = sorted((e for e in every if e["data"] in known), key=lambda e: _place(e, known))
    rows = [_row(each, known[each["data"]]) for each in listed]
    text = f"{TEXT.strip()}\n\n{_ratios(done)}\n\n{_slopes(done)}\n\n"
    text += f"![Time and NLL by the number of classes]({_FIGURE})\n"
    text += f"{AT_EQUAL_NLL}\n{_at_equal_nll(done)}\n\n## All runs\n"
    report("boosting_race", text, HEADER, rows, save=True)
    draw(done)


def _place(each: Result, known: dict[str, Result]) -> tuple[int, str, bool, str]:
    is_ours = each["model"].startswith("ours")
    return known[each["data"]]["classes"], each["data"], is_ours, each["model"]


def _row(each: Result, same_data: Result) -> list[object]:
    shape = f"{same_data['rows']:,} x {same_data['features']:,}"
    begin: list[object] = [each["data"], f"{same_data['classes']:,}", shape]
    if "fit" not in each:
        return [*begin, each["model"], _why_not(each), *[""] * 7]
    times = [f"{each['fit']:.2f}", f"{each['predict']:.4f}" + (" (coarse)" if "coarse" in each else "")]
    sizes = [f"{each[name]:.1f}" for name in ("memory", "size")]
    scores = [f"{each[name]:.3f}" for name in ("nll", "scaled", "accuracy")]
    return [*begin, each["model"], *times, *sizes, *scores, each.get("day", "earlier")]


def _why_not(each: Result) -> str:
    if "limit" in each:
        return f"over {each['limit']} s"
    if "hit before" in each:
        return f"not started: stopped on {each['hit before']}"
    if "expected" in each:
        return f"not started: at least {each['expected']} s, over {each['beyond']} s"
    return str(each.get("error", "not run"))


def _has_learned(each: Result) -> bool:
    """Test that the NLL is below that of equal probabilities."""
    return bool(each["nll"] < np.log(each["classes"]))


def _by_data(done: list[Result]) -> Iterator[tuple[str, dict[str, Result], list[Result]]]:
    """The finished runs on each dataset by model, and those of peers, by the number of classes."""
    finished = sorted((each for each in done if "fit" in each), key=itemgetter("classes", "data"))
    for data in dict.fromkeys(each["data"] for each in finished):
        runs = {each["model"]: each for each in finished if each["data"] == data}
        peers = [each for name, each in runs.items() if not name.startswith("ours") and _has_learned(each)]
        if peers and "ours, one tree" in runs:
            yield data, runs, peers


def _ratios(done: list[Result]) -> str:
    """One line for each dataset: ours against the fastest and the best peer."""
    of_ours = [f"{name}: {what}" for name in ("one tree", "four trees") for what in ("fit", "predict", "NLL")]
    rows = []
    for data, runs, peers in _by_data(done):
        fastest, best = (min(peers, key=itemgetter(by)) for by in ("fit", "nll"))
        nll = f"{best['nll']:.3f} ({fastest['nll']:.3f})"
        cells = [data, f"{fastest['classes']:,}", fastest["model"], nll]
        for name in ("ours, one tree", "ours, four trees"):
            cells += _against(runs.get(name), fastest, min(each["predict"] for each in peers))
        rows.append(cells)
    return markdown_table(["data", "classes", "fastest peer", "peers' NLL", *of_ours], rows)


def _against(mine: Result | None, peer: Result, quickest: float) -> list[str]:
    if mine is None:
        return [""] * 3
    fit, predict = peer["fit"] / mine["fit"], peer["predict"] / mine["predict"]
    return [f"{fit:.1f}x", f"{quickest / mine['predict']:.1f}x ({predict:.1f}x)", f"{mine['nll']:.3f}"]


def _at_equal_nll(done: list[Result]) -> str:
    """One line for each dataset: the best peer, and our fastest model that is as good."""
    rows = []
    for data, runs, peers in _by_data(done):
        best = min(peers, key=itemgetter("nll"))
        mine = [each for name, each in runs.items() if name.startswith("ours")]
        as_good = [each for each in mine if each["nll"] <= 1.02 * best["nll"]]
        chosen = min(as_good, key=itemgetter("fit")) if as_good else min(mine, key=itemgetter("nll"))
        cells = [data, f"{best['classes']:,}"]
        for each in (best, chosen):
            cells += [each["model"], f"{each['nll']:.3f}", f"{each['fit']:.2f}"]
        rows.append([*cells, f"{best['fit'] / chosen['fit']:.1f}x", f"{chosen['nll'] / best['nll']:.2f}"])
    of_both = [title for who in ("peer", "ours") for title in (who, f"{who}: NLL", f"{who}: fit, s")]
    return markdown_table(["data", "classes", *of_both, "time, peer / ours", "NLL, ours / peer"], rows)


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
    of_family = (e for e in done if e["model"] == name and e["data"].startswith(FAMILY))
    runs = (e for e in of_family if "fit" in e and _has_learned(e))
    return sorted((e["classes"], e["fit"], e["nll"], e["rows"]) for e in runs)


def draw(done: list[Result]) -> None:
    """Draw time to fit and NLL against the number of classes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "boosting race", "font.size": 10}
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained", width_ratios=(4, 3))
    for name, colour in COLOURS.items():
        runs = _curve(done, name)
        if not runs:
            continue
        classes, fit, nll, _ = zip(*runs, strict=True)
        style = {"marker": "o" if name.startswith("ours") else "s", "color": colour, "lw": 2, "ms": 4}
        axes[0].loglog(classes, fit, **style)
        axes[1].semilogx(classes, nll, **style)
        for each in done:
            if each["model"] == name and each["data"].startswith(FAMILY) and "limit" in each:
                axes[0].plot(int(each["data"].split("-")[1]), each["limit"], marker="x", color=colour)
    for panel, title in zip(axes, ("seconds to fit, one thread", "NLL, unseen fonts"), strict=True):
        _finish(panel, title, sorted({each[0] for name in COLOURS for each in _curve(done, name)}))
    _label_lines(axes[0], done)
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[1].set_ylim(0, 1.1 * axes[1].dataLim.y1)
    figure.savefig(RESULTS.parent / "figures" / "boosting_race.svg", metadata={"Date": None})


def _label_lines(panel: Any, done: list[Result]) -> None:
    """Write the names beside the panel, at the height of their last points, half a line apart at least."""
    ends = sorted((_curve(done, name)[-1][1], name) for name in COLOURS if _curve(done, name))
    height = 0.0
    for seconds, name in ends:
        height = max(seconds, 1.9 * height)
        panel.text(
            1.02, height, name, transform=panel.get_yaxis_transform(), va="center", color=COLOURS[name]
        )


def _finish(panel: Any, title: str, classes: list[int]) -> None:
    """Few ticks and plain numbers."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    panel.set_xticks([n for n in (26, 100, 400, 1600, 6355) if n in classes])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    panel.set_xlabel("classes (printed kanji)")
    panel.set_title(title, loc="left", fontsize=10)
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
