"""Claims of the paper's two discussions, each as a question to a table of means.

The same questions are put to the paper's own numbers and to ours. Where the paper says "most", "usually" or
"generally", more than half of the cases must agree; where it says "often", a third; where it says "very
beneficial", nine in ten; where it says "very few", at most one in ten may differ; where it says "all" or
"always", none. A gain in NLL is "modest", and a difference "small", below a tenth of the NLL; a gain in NLL
is "large" from a tenth on, and one in accuracy from three points on. A difference counts from the third
decimal, as printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from experiments.reproduce.readings import SCHEMES

POOR_BASES = ("naive_bayes", "boosted_trees")
LOGISTIC = "logistic_regression"

#: Datasets of the kinds that the claims are about: the paper's, and those that stand in for them.
FEW_CLASSES = ("optdigits", "letter")
_OBJECTS = ("ALOI", "ILSVR2010", "omniglot", "kanji_fonts")
TEXT = ("RCV1", "sector", "ODP-5K", "reuters52", "clinc150", "wordnet")
SMALL_OR_OBJECTS = ("optdigits", "micromass", "letter", "devanagari", "nhcd", *_OBJECTS)
MORE_CLASSES = ("devanagari", "nhcd", *TEXT, *_OBJECTS)
LESS_ACCURATE = ("micromass", "ILSVR2010", "kanji_fonts")

Means = Mapping[tuple[str, str, str, str], float]


class Verdict(NamedTuple):
    """Verdict on a claim (None: nothing to judge it by) and the numbers behind it."""

    holds: bool | None
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the question that decides it."""

    words: str
    judge: Callable[[PrintedMeans], Verdict]


@dataclass(frozen=True)
class PrintedMeans:
    """Means by (metric, base, dataset, scheme), rounded as the paper prints them."""

    means: Means

    def value(self, metric: str, base: str, dataset: str, scheme: str) -> float:
        """One mean; NaN where it was not run."""
        return round(self.means.get((metric, base, dataset, scheme), float("nan")), 3)

    def datasets(self, base: str, among: tuple[str, ...] | None = None) -> list[str]:
        """The datasets that were run with every scheme that `base` has, in order of appearance."""
        found: dict[str, set[str]] = {}
        for metric, its_base, dataset, scheme in self.means:
            if its_base == base and metric == "nll" and (among is None or dataset in among):
                found.setdefault(dataset, set()).add(scheme)
        wanted = 2 if base == LOGISTIC else len(SCHEMES)
        return [dataset for dataset, schemes in found.items() if len(schemes) == wanted]

    def gain(self, metric: str, base: str, dataset: str, scheme: str, over: str = "none") -> float:
        """Gain over another scheme, positive if better: lower NLL, or higher accuracy."""
        difference = self.value(metric, base, dataset, scheme) - self.value(metric, base, dataset, over)
        return round(-difference if metric == "nll" else difference, 3)

    def best(self, metric: str, base: str, dataset: str) -> list[str]:
        """The schemes with the best value of a row; several if they are level."""
        values = {scheme: self.value(metric, base, dataset, scheme) for scheme in SCHEMES}
        best = min(values.values()) if metric == "nll" else max(values.values())
        return [scheme for scheme, value in values.items() if value == best]

    def worst(self, metric: str, base: str, dataset: str) -> list[str]:
        """The schemes with the worst value of a row."""
        values = {scheme: self.value(metric, base, dataset, scheme) for scheme in SCHEMES}
        worst = max(values.values()) if metric == "nll" else min(values.values())
        return [scheme for scheme, value in values.items() if value == worst]


Case = tuple[str, str, str]  # metric, base, dataset


def _cases(
    means: PrintedMeans,
    bases: tuple[str, ...],
    metrics: tuple[str, ...] = ("nll", "accuracy"),
    among: tuple[str, ...] | None = None,
) -> list[Case]:
    return [(m, base, d) for base in bases for d in means.datasets(base, among) for m in metrics]


def _share(cases: list[Case], agrees: Callable[[Case], bool], least: float) -> Verdict:
    """Holds if at least this share of the cases agrees (1.0: all); names the first ones that do not."""
    if not cases:
        return Verdict(None, "not run")
    against = [case for case in cases if not agrees(case)]
    n, total = len(cases) - len(against), len(cases)
    holds = n > total / 2 if least == 0.5 else n >= least * total
    named = ", ".join(_name(case) for case in against[:4]) + (", …" if len(against) > 4 else "")
    return Verdict(holds, f"{n} of {total}" + (f"; not {named}" if against else ""))


def _name(case: Case) -> str:
    metric, base, dataset = case
    short = {"naive_bayes": "naive Bayes", "boosted_trees": "trees", LOGISTIC: "logistic"}[base]
    return f"{dataset} ({short}, {'NLL' if metric == 'nll' else 'accuracy'})"


def _always(
    bases: tuple[str, ...],
    scheme: str,
    metrics: tuple[str, ...] = ("nll", "accuracy"),
    least: float = 1.0,
) -> Callable[[PrintedMeans], Verdict]:
    """A scheme beats the baseline in (nearly) every case."""

    def judge(means: PrintedMeans) -> Verdict:
        return _share(_cases(means, bases, metrics), lambda case: means.gain(*case, scheme) > 0, least)

    return judge


def _best_is(
    bases: tuple[str, ...],
    schemes: tuple[str, ...],
    metrics: tuple[str, ...],
    among: tuple[str, ...] | None = None,
    least: float = 0.5,
) -> Callable[[PrintedMeans], Verdict]:
    """The best of a case is one of the given schemes."""

    def judge(means: PrintedMeans) -> Verdict:
        cases = _cases(means, bases, metrics, among)
        return _share(cases, lambda case: bool(set(means.best(*case)) & set(schemes)), least)

    return judge


def _modest_then_substantial(means: PrintedMeans) -> Verdict:
    """The relative gain in NLL is below a tenth on few classes and larger on every other set."""
    few = [_relative_gain(means, each) for each in means.datasets(LOGISTIC, FEW_CLASSES)]
    more = {each: _relative_gain(means, each) for each in means.datasets(LOGISTIC, MORE_CLASSES)}
    if not few or not more:
        return Verdict(None, "not run")
    holds = max(few) < 0.1 and min(more.values()) > max(few)
    listed = ", ".join(f"{name} {share:.0%}" for name, share in more.items())
    return Verdict(holds, f"at most {max(few):.0%} on {' and '.join(FEW_CLASSES)}; {listed}")


def _relative_gain(means: PrintedMeans, dataset: str) -> float:
    """By what share of the NLL external calibration of logistic regression lowers it."""
    gain = means.gain("nll", LOGISTIC, dataset, "external_vs")
    return gain / means.value("nll", LOGISTIC, dataset, "none")


def _large_accuracy_gains(means: PrintedMeans) -> Verdict:
    """Somewhere, three points of accuracy or more; and the largest gain is where there are many classes."""
    if not means.datasets(LOGISTIC, MORE_CLASSES):
        return Verdict(None, "not run")
    gains = {each: means.gain("accuracy", LOGISTIC, each, "external_vs") for each in means.datasets(LOGISTIC)}
    best = max(gains, key=lambda each: gains[each])
    holds = gains[best] >= 0.03 and best in MORE_CLASSES
    return Verdict(holds, ", ".join(f"{name} {gain:+.3f}" for name, gain in gains.items()))


def _costs_accuracy(means: PrintedMeans) -> Verdict:
    """On each of the sets that the paper names, NLL is better by a tenth or more and accuracy worse."""
    nll = {each: _relative_gain(means, each) for each in means.datasets(LOGISTIC, LESS_ACCURATE)}
    if not nll:
        return Verdict(None, "not run")
    accuracy = {each: means.gain("accuracy", LOGISTIC, each, "external_vs") for each in nll}
    holds = all(nll[each] >= 0.1 and accuracy[each] < 0 for each in nll)
    listed = (f"{each}: NLL {-nll[each]:+.0%}, accuracy {accuracy[each]:+.3f}" for each in nll)
    return Verdict(holds, "; ".join(listed))


def _baseline_is_worst(means: PrintedMeans) -> Verdict:
    cases = _cases(means, POOR_BASES)
    return _share(cases, lambda case: "none" in means.worst(*case), 0.9)


def _baseline_never_best(means: PrintedMeans) -> Verdict:
    cases = _cases(means, POOR_BASES)
    return _share(cases, lambda case: "none" not in means.best(*case), 1.0)


def _internal_alone_more_accurate(means: PrintedMeans) -> Verdict:
    """The better internal scheme alone is more accurate than the better one with the external step."""

    def better_alone(case: Case) -> bool:
        alone = max(means.value(*case, scheme) for scheme in ("internal_ps", "internal_ir"))
        return alone > max(means.value(*case, scheme) for scheme in ("both_ps", "both_ir"))

    cases = _cases(means, ("boosted_trees",), ("accuracy",))
    return _share(cases, better_alone, 1 / 3)


def _close_to_isotonic(means: PrintedMeans) -> Verdict:
    """Platt and isotonic, both with the external step, differ by less than a tenth of the NLL."""
    cases = _cases(means, ("boosted_trees",), ("nll",))
    return _share(
        cases,
        lambda case: abs(means.gain(*case, "both_ps", "both_ir")) < 0.1 * means.value(*case, "both_ps"),
        0.5,
    )


def _internal_is_beneficial(means: PrintedMeans) -> Verdict:
    cases = _cases(means, POOR_BASES)
    return _share(
        cases,
        lambda case: max(means.gain(*case, scheme) for scheme in ("internal_ps", "internal_ir")) > 0,
        0.9,
    )


CLAIMS = (
    Claim("Logistic regression: external calibration lowers the NLL on all datasets.",
          _always((LOGISTIC,), "external_vs", ("nll",))),
    Claim("… modestly on optdigits and letter, substantially on the larger sets.", _modest_then_substantial),
    Claim("… and raises accuracy a lot on some, especially with more classes.", _large_accuracy_gains),
    Claim("… but costs accuracy on micromass and ILSVR2010, despite a large gain in NLL.", _costs_accuracy),
    Claim("Naive Bayes and trees: internal calibration is very beneficial in NLL and accuracy.",
          _internal_is_beneficial),
    Claim("The baseline is best for no base learner and dataset.", _baseline_never_best),
    Claim("There are very few cases where the baseline is not the worst.", _baseline_is_worst),
    Claim("Naive Bayes: internal isotonic regression always beats the baseline.",
          _always(("naive_bayes",), "internal_ir")),
    Claim("Boosted trees: internal Platt scaling always beats the baseline.",
          _always(("boosted_trees",), "internal_ps")),
    Claim("External calibration beats the baseline in NLL and accuracy in most cases.",
          _always(POOR_BASES, "external_vs", least=0.5)),
    Claim("The best results are usually those of internal and external calibration together.",
          _best_is(POOR_BASES, ("both_ps", "both_ir"), ("nll", "accuracy"))),
    Claim("Naive Bayes, small sets and objects: isotonic and external together are generally best.",
          _best_is(("naive_bayes",), ("both_ir",), ("nll", "accuracy"), SMALL_OR_OBJECTS)),
    Claim("Naive Bayes, text: external calibration alone is best.",
          _best_is(("naive_bayes",), ("external_vs",), ("nll", "accuracy"), TEXT, least=1.0)),
    Claim("Boosted trees: Platt and external together have the best NLL in most cases …",
          _best_is(("boosted_trees",), ("both_ps",), ("nll",))),
    Claim("… and the difference to isotonic and external is usually small.", _close_to_isotonic),
    Claim("Boosted trees: accuracy is often greater with internal calibration alone.",
          _internal_alone_more_accurate),
)  # fmt: skip
