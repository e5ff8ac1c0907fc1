"""Learners, which train all nodes of a tree."""

from dichotomies.learners.base import (
    LEARNERS,
    CrossFitted,
    KeepsStatistics,
    Learner,
    NodeScorer,
    Scorer,
    TakesFrames,
    Unsupported,
    Wanted,
    choose,
    input_dtypes,
    statistics_of,
    takes_weight,
)
from dichotomies.learners.generic import GenericLearner, GenericScorer

__all__ = [
    "LEARNERS",
    "CrossFitted",
    "GenericLearner",
    "GenericScorer",
    "KeepsStatistics",
    "Learner",
    "NodeScorer",
    "Scorer",
    "TakesFrames",
    "Unsupported",
    "Wanted",
    "choose",
    "input_dtypes",
    "statistics_of",
    "takes_weight",
]

__getattr__, __dir__ = LEARNERS.exports(
    __all__,
    lambda learner: [each for each in learner.trains.values() if each.__module__.startswith("dichotomies.")],
)
