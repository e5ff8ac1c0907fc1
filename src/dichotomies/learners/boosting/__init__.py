"""Boosted trees: two binary classifiers, and the learner that trains them at all nodes of a tree."""

from dichotomies.learners.boosting.adaboost import HistAdaBoostClassifier
from dichotomies.learners.boosting.gradient import HistGradientBoostClassifier
from dichotomies.learners.boosting.learner import BoostingLearner

__all__ = ["BoostingLearner", "HistAdaBoostClassifier", "HistGradientBoostClassifier"]
