"""How all nodes of a tree are trained."""

from dichotomies.learners.base import NodeScorer, NodeTask, Scorer
from dichotomies.learners.generic import GenericLearner, input_dtypes

__all__ = ["GenericLearner", "NodeScorer", "NodeTask", "Scorer", "input_dtypes"]
