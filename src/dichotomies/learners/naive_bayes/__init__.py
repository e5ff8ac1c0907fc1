"""Naive Bayes at every node, from one pass over the rows."""

from dichotomies.learners.naive_bayes.learner import NaiveBayesLearner

__all__ = ["NaiveBayesLearner"]
