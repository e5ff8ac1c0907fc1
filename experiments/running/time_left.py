"""Estimates of the time that the remaining trials take, from the trials that are done."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from experiments.running.result import Result
    from experiments.running.trial import Trial

#: Properties of a trial that its running time depends on, the most important first.
Kind: TypeAlias = tuple[str, ...]
#: Likenesses of so many parts, dataset and learner, tell more than what was thought before.
_CLOSE = 2


class TimeLeft:
    """An estimate of processor time, by the mean of like trials.

    Like trials share their whole kind, such as dataset, base learner, scheme and reading; where there are
    none, dataset, base learner and scheme; then dataset and base learner; then the dataset; then nothing.

    Parameters
    ----------
    results : iterable of Result
        Trials that are done.
    prior : callable, optional
        Seconds that a trial of a kind is thought to take before one of its dataset and learner is done.
    """

    def __init__(
        self, results: Iterable[Result[Any]] = (), prior: Callable[[Kind], float] | None = None
    ) -> None:
        self._prior = prior
        self._sums: dict[tuple[str, ...], float] = defaultdict(float)
        self._counts: Counter[tuple[str, ...]] = Counter()
        for result in results:
            self.note(result)

    def note(self, result: Result[Any]) -> None:
        """Learn from one more trial."""
        for likeness in _likenesses(kind_of(result.trial)):
            self._sums[likeness] += result.seconds
            self._counts[likeness] += 1

    def seconds(self, kinds: Mapping[Kind, int]) -> float | None:
        """Processor time of so many trials of these kinds; None where nothing is known yet."""
        if not self._counts and self._prior is None:
            return None
        return sum(times * self._expected(kind) for kind, times in kinds.items() if times)

    def _expected(self, kind: Kind) -> float:
        known = next((each for each in _likenesses(kind) if each in self._counts), ())
        if self._prior is not None and len(known) < _CLOSE:
            return self._prior(kind)
        return self._sums[known] / self._counts[known]


def kind_of(trial: Trial) -> Kind:
    """Properties of a trial that its running time depends on."""
    return trial.kind()


def _likenesses(kind: Kind) -> Iterator[tuple[str, ...]]:
    """Prefixes of a kind, from all of it to none: the closest kinds share the longest."""
    return (kind[:shared] for shared in range(len(kind), -1, -1))


def in_words(seconds: float) -> str:
    """A length of time for people.

    Examples
    --------
    >>> from experiments.running.time_left import in_words
    >>> in_words(8), in_words(200), in_words(9000), in_words(400_000)
    ('8 s', '3 min', '2 h 30 min', '4 d 15 h')
    """
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"
