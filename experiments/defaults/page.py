"""The tables and the picture of the study of defaults."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import sqrt
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, NamedTuple

from dichotomies.plots.style import COLOURS, GREY, MARKERS, matplotlib, tidy
from experiments.defaults.ways import BEFORE, CANDIDATES, FIXED, FLAT, LEARNERS, NOW, PLAIN
from experiments.pages import markdown
from experiments.pages.grid import Grid, Line, Words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from experiments.defaults.trial import DefaultsResult

#: A pair that is cross-fitted inside and outside, to tell the price of folds from that of the choice.
NAMED = "shrunk-platt+vector-odds"
#: Seconds of the plain fit by which the times are grouped.
_DURATIONS = (0.03, 0.1)
#: Test rows from which a calibration error is measured with little noise.
_MANY_ROWS = 2_000
HALF_A_POINT = 0.5


class Case(NamedTuple):
    """A dataset with a base learner: all results of a way, by repeat."""

    dataset: str
    learner: str
    by_way: dict[str, list[DefaultsResult]]

    def mean(self, way: str, name: str = "nll") -> float:
        """Mean of a number over the repeats."""
        return fmean(getattr(each, name) for each in self.by_way[way])

    @property
    def bound(self) -> float:
        """NLL of the best way in each repeat, chosen on the test rows."""
        ways = [*FIXED, BEFORE, NOW]
        return fmean(
            min(each.nll for each in results) for results in zip(*(self.by_way[w] for w in ways), strict=True)
        )

    @property
    def seconds_to_predict(self) -> float:
        """Time in which the plain model predicts as many rows as it was trained on."""
        one = self.by_way[PLAIN][0]
        return self.mean(PLAIN, "predict_seconds") * one.n_train / one.n_test

    @property
    def least_ece(self) -> float:
        """Lowest calibration error of any way, chosen on the test rows."""
        return min(self.mean(way, "ece") for way in (*FIXED, NOW))


def cases(results: Iterable[DefaultsResult], rows_per_class: int = 0) -> list[Case]:
    """Complete cases, in the order of the results, with so many rows of a class; 0 for all."""
    found: dict[tuple[str, str], dict[str, list[DefaultsResult]]] = defaultdict(lambda: defaultdict(list))
    for each in (r for r in results if r.trial.rows_per_class == rows_per_class):
        found[each.trial.dataset, each.trial.learner][each.trial.way].append(each)
    complete = {}
    needed = (*(CANDIDATES if rows_per_class else FIXED), BEFORE, NOW)
    for key, by_way in found.items():
        repeats = set.intersection(*({r.trial.repeat for r in by_way[way]} for way in needed))
        kept = {way: [r for r in each if r.trial.repeat in repeats] for way, each in by_way.items()}
        if repeats:
            complete[key] = kept
    order = {name: place for place, name in enumerate(LEARNERS)}
    return sorted((Case(*key, by_way) for key, by_way in complete.items()), key=lambda c: order[c.learner])


def best_fixed(found: list[Case]) -> str:
    """The fixed pair with the least geometric mean of the NLL over all cases."""
    return min(FIXED, key=lambda way: geometric_mean(case.mean(way) for case in found))


def summary(found: list[Case]) -> str:
    """Sentences about all cases."""
    fixed = best_fixed(found)
    lines = []
    titles = {
        NOW: "The default",
        BEFORE: "The default before",
        fixed: f"The best fixed pair, {_pair(fixed)},",
        PLAIN: "No calibration",
    }
    for way, title in titles.items():
        ratios = [case.mean(way) / case.bound for case in found]
        worst = found[ratios.index(max(ratios))]
        lines.append(
            f"- {title} has, on the geometric mean of {len(found)} cases, "
            f"{geometric_mean(ratios):.3f} times the NLL of the best way in hindsight, at worst "
            f"{max(ratios):.2f} times ({worst.dataset}, {LEARNERS[worst.learner]})."
        )
    times = [case.mean(NOW, "fit_seconds") / case.mean(PLAIN, "fit_seconds") for case in found]
    lines.append(
        f"- The default takes {geometric_mean(times):.1f} times the time of the plain fit on the geometric "
        f"mean, at most {max(times):.1f} times."
    )
    large = [case for case in found if case.by_way[NOW][0].n_test >= _MANY_ROWS]
    if large:
        now, noise = ([case.mean(NOW, name) for case in large] for name in ("ece", "calibrated_ece"))
        least = [case.least_ece for case in large]
        lines.append(
            f"- Its calibration error (ECE) in the {len(large)} cases of {_MANY_ROWS:,} test rows or more is "
            f"{fmean(now):.3f} on average, {max(now):.3f} at most; that of the pair of least error in "
            f"hindsight, in each case another, {fmean(least):.3f} and {max(least):.3f}. Sampling noise "
            f"alone, of test rows whose classes are drawn from the probabilities, makes {fmean(noise):.3f} "
            f"and {max(noise):.3f}."
        )
    gaps = [case.mean(NOW, "accuracy") - max(case.mean(way, "accuracy") for way in FIXED) for case in found]
    lines.append(
        f"- Its accuracy is, on average, {100 * fmean(gaps):+.2f} points from the most accurate pair's."
    )
    return "\n".join(lines) + "\n"


def table(found: list[Case]) -> Grid:
    """NLL, accuracy, ECE and time of each case."""
    fixed = best_fixed(found)
    header = (
        *("dataset", "learner", "classes", "rows", "NLL: plain", "before", "now", "chosen"),
        *(_pair(fixed), "best in hindsight", "flat", "now / best", "accuracy: plain", "now"),
        *("ECE: now", "least in hindsight", "noise alone"),
        *("seconds: plain", "before", "now", "flat"),
    )
    lines = [Line(tuple(Words(text) for text in _cells(case, fixed))) for case in found]
    return Grid("defaults/cases", "The default and others", header, 2, tuple(lines))


def _cells(case: Case, fixed: str) -> list[str]:
    one = case.by_way[NOW][0]
    flat = case.by_way.get(FLAT)
    pairs = sorted({each.chosen for each in case.by_way[NOW]})
    return [
        case.dataset,
        LEARNERS[case.learner],
        f"{one.n_classes:,}",
        f"{one.n_train:,}",
        *(f"{case.mean(way):.3f}" for way in (PLAIN, BEFORE, NOW)),
        "; ".join(pairs),
        f"{case.mean(fixed):.3f}",
        f"{case.bound:.3f}",
        f"{case.mean(FLAT):.3f}" if flat else "–",
        f"{case.mean(NOW) / case.bound:.3f}",
        *(f"{case.mean(way, 'accuracy'):.3f}" for way in (PLAIN, NOW)),
        *(f"{ece:.3f}" for ece in (case.mean(NOW, "ece"), case.least_ece, case.mean(NOW, "calibrated_ece"))),
        *(f"{case.mean(way, 'fit_seconds'):.2g}" for way in (PLAIN, BEFORE, NOW)),
        f"{case.mean(FLAT, 'fit_seconds'):.2g}" if flat else "–",
    ]


def times(found: list[Case]) -> Grid:
    """Time of the default by that of the plain fit, beside a pair that is named: without a choice."""
    header = (
        *("plain fit", "cases", "plain, seconds", "predicting the training rows / plain"),
        f"{_pair(NAMED)}, named / plain",
        *("default / plain: mean", "most", "default / named: mean", "most"),
    )
    lines = []
    bounds = (0.0, *_DURATIONS, float("inf"))
    for low, high in pairwise(bounds):
        mine = [case for case in found if low <= case.mean(PLAIN, "fit_seconds") < high]
        if not mine:
            continue
        plain, named, now = ([case.mean(way, "fit_seconds") for case in mine] for way in (PLAIN, NAMED, NOW))
        of_plain, of_named = ([a / b for a, b in zip(now, each, strict=True)] for each in (plain, named))
        title = f"{low:g} s or more" if high == float("inf") else f"up to {high:g} s"
        cells = (
            *(title, str(len(mine)), f"{geometric_mean(plain):.2g}"),
            f"{geometric_mean(case.seconds_to_predict for case in mine) / geometric_mean(plain):.1f}",
            f"{geometric_mean(named) / geometric_mean(plain):.1f}",
            *(f"{value:.1f}" for each in (of_plain, of_named) for value in (geometric_mean(each), max(each))),
        )
        lines.append(Line(tuple(Words(text) for text in cells)))
    return Grid("defaults/times", "Time of the default", header, 1, tuple(lines))


def few_rows(by_rows: dict[int, list[Case]]) -> Grid:
    """The default with few rows of a class, against no calibration and against the best fixed pair."""
    header = (
        *("rows of a class", "cases", "NLL now / plain: mean", "worst", "NLL before / plain: worst"),
        *("accuracy now - that of the best pair: mean", "worst", "cases within half a point"),
        *("accuracy now - the highest in hindsight: mean", "worst", "its standard error"),
    )
    lines = []
    for n_rows, found in by_rows.items():
        now, before = ([case.mean(way) / case.mean(PLAIN) for case in found] for way in (NOW, BEFORE))
        gaps = [100 * (case.mean(NOW, "accuracy") - case.mean(_best(case), "accuracy")) for case in found]
        to_most = [100 * (case.mean(NOW, "accuracy") - _highest(case)) for case in found]
        furthest = found[to_most.index(min(to_most))]
        error = sqrt(_highest(furthest) * (1 - _highest(furthest)) / furthest.by_way[NOW][0].n_test)
        cells = (
            *(str(n_rows), str(len(found)), f"{geometric_mean(now):.3f}", f"{max(now):.3f}"),
            *(f"{max(before):.3f}", f"{fmean(gaps):+.2f}", f"{min(gaps):+.2f}"),
            str(sum(gap >= -HALF_A_POINT for gap in gaps)),
            *(f"{fmean(to_most):+.2f}", f"{min(to_most):+.2f}", f"{100 * error:.1f}"),
        )
        lines.append(Line(tuple(Words(text) for text in cells)))
    return Grid("defaults/few", "Few rows", header, 1, tuple(lines))


def _best(case: Case) -> str:
    """The candidate of least NLL on the test rows."""
    return min(CANDIDATES, key=case.mean)


def _highest(case: Case) -> float:
    """Accuracy of the most accurate candidate on the test rows."""
    return max(case.mean(way, "accuracy") for way in CANDIDATES)


def contents(results: list[DefaultsResult]) -> dict[str, str]:
    """Markdown by the name of its region."""
    found = cases(results)
    sizes = sorted({each.trial.rows_per_class for each in results} - {0})
    few = few_rows({n_rows: cases(results, n_rows) for n_rows in sizes})
    tables = {grid.name: markdown.table(grid) for grid in (table(found), times(found), few)}
    return {"defaults/summary": summary(found), **tables}


def draw_honesty(results: Iterable[DefaultsResult], path: Path) -> None:
    """Draw the NLL that is reported against that of the test rows, a point for each trial."""
    pyplot = matplotlib("pyplot")
    with pyplot.rc_context({"svg.hashsalt": "dichotomies", "font.size": 8}):
        figure, ax = pyplot.subplots(figsize=(4.2, 4.0), layout="constrained")
        tidy(ax)
        shown = [
            each
            for each in results
            if each.trial.way == NOW and each.reported_nll > 0 and not each.trial.rows_per_class
        ]
        values = [value for each in shown for value in (each.reported_nll, each.nll)]
        span = (min(values) / 1.2, max(values) * 1.2)
        ax.plot(span, span, color=GREY, linewidth=0.8, zorder=1)
        for (learner, title), colour, marker in zip(LEARNERS.items(), COLOURS, MARKERS, strict=False):
            mine = [each for each in shown if each.trial.learner == learner]
            x, y = [each.reported_nll for each in mine], [each.nll for each in mine]
            ax.plot(x, y, marker, color=colour, markersize=4, alpha=0.7, linestyle="none", label=title)
        ax.set(xscale="log", yscale="log", xlim=span, ylim=span)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(matplotlib("ticker").LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.set_minor_locator(matplotlib("ticker").NullLocator())
        ax.set(xlabel="NLL that the classifier reports, out of fold", ylabel="NLL on test rows")
        ax.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _pair(way: str) -> str:
    return " and ".join(way.split("+"))
