"""A model without some of its classes, by conditioning: the probabilities of the others, renormalised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies._kernels.composition import implied_log_odds
from dichotomies.inference.fitted import FittedForest
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Part
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest


@savable(
    "conditioned-scorer",
    tree=Part(ClassTree, "n_nodes", n_classes="n_kept"),
    model=Part(FittedForest, "n_features", "n_classes"),
    columns=Array("integer", "n_kept", within=(0, "n_classes")),
)
@dataclass(frozen=True, eq=False)
class ConditionedScorer:
    """Log-odds at the nodes of a tree over some of a model's classes, implied by the model's probabilities.

    Attributes
    ----------
    tree : ClassTree
        Over the classes that are left.
    model : FittedForest
        Over all classes, with everything that calibrates it.
    columns : (n_kept,)
        Codes of the classes that are left.
    """

    tree: ClassTree
    model: FittedForest
    columns: IntArray

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        left = np.ascontiguousarray(self.model.log_proba(X)[:, self.columns])
        return implied_log_odds(self.tree, left)

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return self.log_odds(X)[rows, nodes]


def conditioned(model: FittedForest, labels: LabelArray) -> FittedForest:
    """The model given that the class is none of the labels, exactly: a single tree without them."""
    scorer = model.scorer
    tree = model.tree.restrict(model.tree.classes[~np.isin(model.tree.classes, labels)])
    if isinstance(scorer, ConditionedScorer):  # forgotten before: one is enough
        model = scorer.model
    columns = np.flatnonzero(np.isin(model.tree.classes, tree.classes))
    return FittedForest(Forest.of([tree]), ConditionedScorer(tree, model, columns))
