"""How all nodes of a tree are trained."""

from dichotomies.learners.base import (
    LEARNERS,
    CrossFitted,
    Effort,
    Learner,
    NodeScorer,
    NodeTask,
    Scorer,
    Unsupported,
    Wanted,
)
from dichotomies.learners.choice import choose
from dichotomies.learners.generic import GenericLearner, GenericScorer, input_dtypes, takes_weight

__all__ = [
    "LEARNERS",
    "CrossFitted",
    "Effort",
    "GenericLearner",
    "GenericScorer",
    "Learner",
    "NodeScorer",
    "NodeTask",
    "Scorer",
    "Unsupported",
    "Wanted",
    "choose",
    "input_dtypes",
    "takes_weight",
]
