"""Learners, which train all nodes of a tree."""

from dichotomies.learners.base import (
    LEARNERS,
    CrossFitted,
    Learner,
    NodeScorer,
    Scorer,
    Unsupported,
    Wanted,
    choose,
    input_dtypes,
    takes_weight,
)
from dichotomies.learners.generic import GenericLearner, GenericScorer

__all__ = [
    "LEARNERS",
    "CrossFitted",
    "GenericLearner",
    "GenericScorer",
    "Learner",
    "NodeScorer",
    "Scorer",
    "Unsupported",
    "Wanted",
    "choose",
    "input_dtypes",
    "takes_weight",
]

__getattr__, __dir__ = LEARNERS.exports(
    __all__,
    lambda learner: [each for each in learner.trains.values() if each.__module__.startswith("dichotomies.")],
)
