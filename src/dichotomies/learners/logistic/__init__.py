"""Logistic regression at all nodes together."""

from dichotomies.learners.logistic.learner import LogisticLearner
from dichotomies.learners.logistic.scaled import ScaledLogisticLearner, ScaledLogisticRegression
from dichotomies.learners.logistic.tuned import TunedLogisticLearner, TunedLogisticRegression

__all__ = [
    "LogisticLearner",
    "ScaledLogisticLearner",
    "ScaledLogisticRegression",
    "TunedLogisticLearner",
    "TunedLogisticRegression",
]
