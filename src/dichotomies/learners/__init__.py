"""Learners, which train all nodes of a tree."""

from dichotomies.learners.base import (
    LEARNERS,
    CrossFitted,
    Learner,
    NodeScorer,
    Scorer,
    Unsupported,
    Wanted,
)
from dichotomies.learners.choice import choose
from dichotomies.learners.generic import GenericLearner, GenericScorer, input_dtypes, takes_weight

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
