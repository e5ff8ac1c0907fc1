"""Answers of the study, in sentences made of its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.study.classifiers import CALIBRATIONS, REFERENCE
from experiments.study.grids import percent
from experiments.study.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from experiments.study.comparisons import Change, Comparisons

_LOWERS = {
    "internal": "Internal calibration lowers",
    "external": "External calibration lowers",
    "both": "Both together lower",
}


def answers(found: Comparisons) -> str:
    """Sentences on calibration of other trees than random ones, and on the best trees."""
    return "".join(
        f"- {sentence}\n"
        for sentence in (
            *_carry_over(found),
            *_by_depth(found),
            *_overall(found),
        )
    )


def _carry_over(found: Comparisons) -> Iterator[str]:
    others = [each for each in found.structures if each != REFERENCE]
    for calibration in CALIBRATIONS:
        at_random = found.change(found.learners, [REFERENCE], calibration)
        elsewhere = found.change(found.learners, others, calibration)
        if calibration != "none" and at_random and elsewhere:
            yield (
                f"{_LOWERS[calibration]} the NLL in {_cases(at_random)} with random trees and in "
                f"{_cases(elsewhere)} with other trees; the median changes are {percent(at_random.median)} "
                f"and {percent(elsewhere.median)}{_range(found, others, calibration)}."
            )


def _range(found: Comparisons, structures: Sequence[str], calibration: str) -> str:
    """From which structure's median change to which."""
    changes = {each: found.change(found.learners, [each], calibration) for each in structures}
    medians = {name: change.median for name, change in changes.items() if change}
    least, most = max(medians, key=lambda each: medians[each]), min(medians, key=lambda each: medians[each])
    if least == most:
        return ""
    return f", by structure from {percent(medians[least])} ({least}) to {percent(medians[most])} ({most})"


def _by_depth(found: Comparisons) -> Iterator[str]:
    found_of = {each: found.depth_correlation(each) for each in CALIBRATIONS if each != "none"}
    known = {name: value for name, value in found_of.items() if value is not None}
    if known:
        listed = ", ".join(f"{value:+.2f} for {name}".replace("-", "−") for name, value in known.items())
        yield (
            "Among the trees of one dataset and base learner, the rank correlation of mean depth and the "
            f"change of the NLL is, in the median, {listed}; below 0, deeper trees gain more."
        )


def _overall(found: Comparisons) -> Iterator[str]:
    means = found.means_to_random()
    if len(means) > 1:
        first = sorted(means, key=lambda each: means[each])[:4]
        named = ", ".join(f"{each} ({means[each]:.3f})" for each in first)
        yield (
            "Over all datasets, base learners and calibrations, the geometric mean of the NLL relative to "
            f"random trees is lowest, of {len(means)} structures, with {named}."
        )


def _cases(change: Change) -> str:
    return f"{change.lowered} of {change.datasets} cases"


def omissions() -> str:
    """List of what was left out, with the reasons."""
    return "".join(f"- {limit.what}: {limit.reason}.\n" for limit in LIMITS)


def coverage(found: Comparisons) -> str:
    """Numbers of trials and combinations, and their time."""
    keys = found.combinations()
    trials = [result for key in keys for result in found.results(key)]
    hours = sum(result.seconds for result in trials) / 3600
    return (
        f"{len(trials):,} trials of {len(keys):,} combinations of dataset, base learner, structure and "
        f"calibration, {hours:.1f} hours of one processor.\n"
    )
