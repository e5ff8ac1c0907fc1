"""Answers of the study, in sentences made of its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.running.trial import BASE_LEARNERS
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
    """Sentences on calibration of other trees than random ones, and on the best trees and calibrations."""
    return "".join(
        f"- {sentence}\n"
        for sentence in (
            *_carry_over(found),
            *_by_learner(found),
            *_by_depth(found),
            *_overall(found),
            *_best(found),
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


def _by_learner(found: Comparisons) -> Iterator[str]:
    others = [each for each in found.structures if each != REFERENCE]
    for learner in found.learners:
        parts = []
        for calibration in CALIBRATIONS:
            at_random = found.change([learner], [REFERENCE], calibration)
            elsewhere = found.change([learner], others, calibration)
            if calibration != "none" and at_random and elsewhere:
                parts.append(
                    f"{calibration} {percent(at_random.median)} and {percent(elsewhere.median)} "
                    f"(lower in {_cases(at_random)} and {_cases(elsewhere)})"
                )
        if parts:
            yield f"With {BASE_LEARNERS[learner]}, for random and for other trees: {'; '.join(parts)}."


def _overall(found: Comparisons) -> Iterator[str]:
    means = found.means_to_random()
    if len(means) > 1:
        first = sorted(means, key=lambda each: means[each])[:4]
        named = ", ".join(f"{each} ({means[each]:.3f})" for each in first)
        yield (
            "Over all datasets, base learners and calibrations, the geometric mean of the NLL relative to "
            f"random trees is lowest, of {len(means)} structures, with {named}."
        )


def _best(found: Comparisons) -> Iterator[str]:
    for calibration in ("none", "both"):
        for learner in found.learners:
            ranks = found.ranks(learner, calibration)
            if len(ranks) > 1:
                first = sorted(ranks, key=lambda each: ranks[each])[:3]
                named = ", ".join(f"{each} ({ranks[each]:.1f})" for each in first)
                state = "Uncalibrated" if calibration == "none" else "Calibrated both ways"
                yield (
                    f"{state}, {BASE_LEARNERS[learner]} has its lowest mean ranks by NLL, of {len(ranks)} "
                    f"structures, with {named}; random trees have {ranks.get(REFERENCE, float('nan')):.1f}."
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
