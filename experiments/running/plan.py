"""Plans: the trials that would be run, and an estimate of their time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from experiments.running.time_left import TimeLeft, in_words, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.running.result import Result
    from experiments.running.time_left import Kind
    from experiments.running.trial import Trial


class TrialDataset(Protocol):
    """A dataset that trials are about."""

    @property
    def dataset(self) -> str:
        """Its name in `experiments.datasets`."""

    @property
    def title(self) -> str:
        """Title for people."""

    def names(self) -> dict[str, str]:
        """Names for machines."""


class TrialChoice(Protocol):
    """Requested datasets, and trials on them."""

    @property
    def subjects(self) -> Sequence[TrialDataset]:
        """The datasets."""

    def trials(self) -> Sequence[Trial]:
        """The trials, in the order in which they are run."""


@dataclass(frozen=True)
class Share:
    """The trials of one dataset: all of them, and how many are to be run."""

    subject: TrialDataset
    trials: int
    to_run: int

    def counts(self) -> dict[str, int]:
        """The numbers of trials, by name."""
        return {"trials": self.trials, "finished": self.trials - self.to_run, "to_run": self.to_run}


@dataclass(frozen=True)
class Plan:
    """The trials that would be run, by dataset.

    Attributes
    ----------
    shares : tuple of Share
        The trials of each dataset.
    seconds : float or None
        Estimate of the time; None where there is nothing to estimate it from.
    """

    shares: tuple[Share, ...]
    seconds: float | None

    @property
    def trials(self) -> int:
        """The number of all trials."""
        return sum(share.trials for share in self.shares)

    @property
    def to_run(self) -> int:
        """The number of those to be run."""
        return sum(share.to_run for share in self.shares)

    def document(self) -> dict[str, Any]:
        """The plan for machines: plain dictionaries, lists and numbers."""
        return {
            "datasets": [{**share.subject.names(), **share.counts()} for share in self.shares],
            "trials": self.trials,
            "finished": self.trials - self.to_run,
            "to_run": self.to_run,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        lines = [
            f"{share.subject.title}: {share.trials} trials, {share.trials - share.to_run} finished, "
            f"{share.to_run} to run"
            for share in self.shares
        ]
        unknown = "not known before the first results"
        time = unknown if self.seconds is None else f"about {in_words(self.seconds)}"
        return "\n".join([*lines, f"In all {self.to_run} of {self.trials} trials to run; time: {time}."])


def plan_of(
    choice: TrialChoice,
    known: Sequence[Result[Any]],
    n_jobs: int,
    prior: Callable[[Kind], float] | None = None,
) -> Plan:
    """Plan of the trials of a choice that have no result yet.

    Parameters
    ----------
    choice : TrialChoice
        The requested trials.
    known : sequence of results
        Finished trials, of this choice or another; the estimate of the time is made from all of them.
    n_jobs : int
        Processes.
    prior : callable, optional
        Seconds that a trial of a kind is thought to take, as in `TimeLeft`.
    """
    finished, trials = {result.trial for result in known}, choice.trials()
    waiting = [trial for trial in trials if trial not in finished]
    total, left = (Counter(trial.dataset for trial in each) for each in (trials, waiting))
    seconds = TimeLeft(known, prior).seconds(Counter(map(kind_of, waiting)))
    return Plan(
        tuple(Share(each, total[each.dataset], left[each.dataset]) for each in choice.subjects),
        None if seconds is None else seconds / n_jobs,
    )
