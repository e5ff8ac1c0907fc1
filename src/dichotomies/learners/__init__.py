"""How all nodes of a tree are trained."""

from dichotomies.learners.base import (
    LEARNERS,
    CrossFitted,
    Learner,
    NodeScorer,
    Scorer,
    Unsupported,
    Wanted,
    expect_fits,
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
    "expect_fits",
    "input_dtypes",
    "takes_weight",
]
