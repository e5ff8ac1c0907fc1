"""Logistic regression at all nodes on a GPU, through torch."""

from dichotomies.learners.gpu.learner import GpuLogisticLearner

__all__ = ["GpuLogisticLearner"]
