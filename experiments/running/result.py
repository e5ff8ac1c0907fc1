"""A result: what was measured of one trial, and how it came about."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, Self, TypeVar

from experiments.running.trial import Trial

T = TypeVar("T", bound=Trial)


@dataclass(frozen=True)
class Result(Generic[T]):
    """The numbers of one trial, of whatever kind; the names are the columns of the store.

    Attributes
    ----------
    trial : Trial
        The trial that was run.
    nll, nll_unclipped : float
        Negative log-likelihood in nats, probabilities below 1e-15 read as 1e-15 as in the paper, and
        as they are.
    accuracy, top5_accuracy : float
        Share of the test rows whose class is the most probable one, or among the five most probable.
    ece : float
        Expected calibration error of the most probable class, in 20 bins of equal width.
    brier : float
        Squared error summed over the classes.
    mean_depth : float
        Mean depth of the tree's leaves.
    n_train, n_test, n_classes, n_features : int
        Sizes: rows the classifier was trained on and tested on, classes, and features after preparation.
    fit_seconds, predict_seconds : float
        Processor time.
    peak_memory_mb : float
        The most memory the process held during the trial, the dataset included, in 2**20 bytes.
    warnings : str
        Distinct warnings of the classifier, one per line; empty if there were none.
    finished_at : str
        When, in UTC, as ISO 8601.
    versions : str
        Versions of Python and of the libraries, as a JSON object.
    """

    trial: T
    nll: float
    nll_unclipped: float
    accuracy: float
    top5_accuracy: float
    ece: float
    brier: float
    mean_depth: float
    n_train: int
    n_test: int
    n_classes: int
    n_features: int
    fit_seconds: float
    predict_seconds: float
    peak_memory_mb: float
    warnings: str
    finished_at: str
    versions: str

    def __post_init__(self) -> None:
        lost = [name for name in METRICS if math.isnan(getattr(self, name))]
        if lost:
            raise ValueError(f"A result must be of numbers, but {', '.join(lost)} of {self.trial} is NaN.")

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the columns, those of the trial first."""
        own = (field.name for field in fields(cls) if field.name != "trial")
        return (*cls.trial_type().columns(), *own)

    @classmethod
    def trial_type(cls) -> type[T]:
        """The kind of trial that was run."""
        raise NotImplementedError

    def values(self) -> tuple[Any, ...]:
        """The values, in the order of `columns`."""
        own = (getattr(self, field.name) for field in fields(self) if field.name != "trial")
        return (*self.trial.values(), *own)

    @classmethod
    def from_values(cls, values: tuple[Any, ...]) -> Self:
        """The result with these values, in the order of `columns`."""
        n = len(cls.trial_type().columns())
        return cls(cls.trial_type()(*values[:n]), *values[n:])

    @property
    def seconds(self) -> float:
        """Processor time of training and prediction together."""
        return self.fit_seconds + self.predict_seconds


#: Those that tell how good the classifier is: the same in every run of the same trial.
METRICS = ("nll", "nll_unclipped", "accuracy", "top5_accuracy", "ece", "brier", "mean_depth")


def now() -> str:
    """The present moment in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def versions() -> str:
    """Versions of everything the numbers may depend on, as JSON."""
    import numpy
    import scipy
    import sklearn

    import dichotomies

    return json.dumps(
        {
            "dichotomies": dichotomies.__version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        }
    )
