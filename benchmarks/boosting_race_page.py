"""The page and the figure of the boosting race, from its stored results."""

from __future__ import annotations

from typing import Any

from benchmarks.race import RESULTS, report

Result = dict[str, Any]

TEXT = """
# Boosted trees by the number of classes

Nested dichotomies of boosted trees (`HistGradientBoostClassifier` at the nodes, all defaults) against flat
boosting, which grows one tree per class and round: LightGBM, XGBoost (one tree per class; multi-output
trees), CatBoost and scikit-learn's `HistGradientBoostingClassifier`. Default parameters, and for two of them
the best of three stated settings on a fifth of the training rows (`benchmarks/boosting_race.py`). One thread,
processor seconds; kernels are compiled beforehand. Memory is the growth of the peak during fit and
prediction, size that of the model in a file (ours: its own format; others: pickle). *NLL, scaled* is after
temperature scaling, each half of the test rows with the temperature of the other half (extreme where a half
has no errors: kanji_fonts-26 has few test rows). A fit and prediction that needs more processor time than
the limit is stopped and reported so. Models that are not listed for a dataset have not been run on it.

**Read with care.** Our defaults were chosen by a search on training rows of letter, omniglot and
kanji_fonts and on 70 % of optdigits, some of which are test rows here; the peers are at their libraries'
defaults, and their searched settings have not been run. The rows below were run one after another on a busy
machine, with a limit of 100 s.

Generated data: *table* has 20 numbers, a tenth of them missing, and 10 columns of 5 to 200 categories;
*covtype-like* has 10 numbers, 44 indicators and 7 classes of the sizes of covtype. On these and on *nhcd* and
*optdigits* every fourth row is for testing; omniglot holds out drawers, kanji_fonts fonts.
"""

HEADER = [
    "data", "classes", "rows x features", "model", "fit, s", "predict, s", "memory, MiB", "size, MiB",
    "NLL", "NLL, scaled", "accuracy",
]  # fmt: skip

#: Data of which there are several numbers of classes.
FAMILIES = ("kanji_fonts", "omniglot")
COLOURS = {
    "ours, one tree": "#0b6e4f",
    "ours, ten trees": "#21a179",
    "LightGBM": "#c8553d",
    "XGBoost": "#f28f3b",
}


def write_page(done: list[Result]) -> None:
    """Write ``docs/benchmarks/boosting_race.md`` and ``docs/figures/boosting_race.svg``."""
    known = {each["data"]: each for each in done if "fit" in each}
    rows = [_row(each, known[each["data"]]) for each in sorted(done, key=lambda e: _place(e, known))]
    text = f"{TEXT.strip()}\n\n{_ratios(done)}\n\n![Time and NLL by the number of classes]({_FIGURE})\n"
    report("boosting_race", text, HEADER, rows, save=True)
    draw(done)


_FIGURE = "../figures/boosting_race.svg"


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
    """One line for each dataset: our tree against the fastest peer."""
    header = ["data", "classes", "fastest peer", "fit: times as long", "predict: times as long", "NLL"]
    lines = [f"| {' | '.join(each)} |" for each in (header, ["---"] * len(header))]
    for data in dict.fromkeys(each["data"] for each in done):
        runs = {each["model"]: each for each in done if each["data"] == data}
        peers = [each for name, each in runs.items() if not name.startswith("ours") and "fit" in each]
        mine = runs.get("ours, one tree", {})
        if not peers or "fit" not in mine:
            continue
        peer = min(peers, key=lambda each: each["fit"])
        quickest = min(each["predict"] for each in peers)
        ten = runs.get("ours, ten trees", {}).get("nll")
        # too few rows for the clock
        predict = f"{quickest / mine['predict']:.1f}" if mine["predict"] > 0.002 else ""
        nll = f"{peer['nll']:.3f}; ours {mine['nll']:.3f}" + ("" if ten is None else f", ten trees {ten:.3f}")
        lines.append(
            f"| {data} | {mine['classes']:,} | {peer['model']} | {peer['fit'] / mine['fit']:.1f} | "
            f"{predict} | {nll} |"
        )
    return "\n".join(lines)


def draw(done: list[Result]) -> None:
    """Draw time to fit and NLL against the number of classes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "boosting race"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, colour in COLOURS.items():
        for family, marker in zip(FAMILIES, "os", strict=True):
            runs = sorted(
                (e["classes"], e["fit"], e["nll"])
                for e in done
                if e["model"] == name and e["data"].startswith(family) and "fit" in e
            )
            if runs:
                classes, fit, nll = zip(*runs, strict=True)
                label = name if family == FAMILIES[0] else None
                axes[0].loglog(classes, fit, marker=marker, color=colour, label=label)
                axes[1].loglog(classes, nll, marker=marker, color=colour)
    axes[0].set(xlabel="classes", ylabel="processor seconds to fit")
    axes[1].set(xlabel="classes", ylabel="NLL of test rows")
    axes[0].legend(frameon=False)
    axes[1].set_title("circles: kanji_fonts; squares: omniglot", fontsize=9)
    for each in axes:
        each.grid(alpha=0.3)
    figure.savefig(RESULTS.parent / "figures" / "boosting_race.svg", metadata={"Date": None})
