"""Parameters of gradient boosting that follow the number of rows of a node, and the size of an ensemble.

Chosen by the NLL of rows that were held out from the training rows of letter, optdigits and parts of omniglot
and kanji_fonts, and on generated tables, for single trees and for ensembles of four and eight. The more rows
there are, the more and the larger trees pay, up to 63 leaves, beyond which noisy labels are learned by heart;
many members with few rounds each are better than few with many (``python -m benchmarks.boosting_budget``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray


#: Step of a single class tree; number of members of an ensemble that have all rounds; least share of them.
STEP, FULL_MEMBERS, LEAST_SHARE = 0.35, 10, 0.25


def share_of_rounds(n_members: int) -> float:
    """Share of the rounds that each member of an ensemble has: more than ten share the rounds of ten.

    Examples
    --------
    >>> from dichotomies.learners.boosting.sizes import share_of_rounds, step_of_member
    >>> [(share_of_rounds(n), round(step_of_member(n), 2)) for n in (1, 10, 20, 40)]
    [(1.0, 0.35), (1.0, 0.35), (0.5, 0.59), (0.25, 0.99)]
    """
    return min(max(FULL_MEMBERS / n_members, LEAST_SHARE), 1.0)


def step_of_member(n_members: int) -> float:
    """Learning rate of a member of an ensemble: larger steps make up for fewer rounds."""
    return float(STEP / share_of_rounds(n_members) ** 0.75)


def by_rows(n_rows: FloatArray, n_features: int) -> dict[str, FloatArray]:
    """Values of the parameters that are "auto", for nodes with these numbers of rows, or total weights.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.learners.boosting.sizes import by_rows
    >>> auto = by_rows(np.array([16.0, 1024.0, 16384.0]), n_features=64)
    >>> auto["n_estimators"], auto["max_leaf_nodes"], auto["max_tree_features"]
    (array([ 28.,  76., 108.]), array([ 8.,  8., 63.]), array([0.25, 0.25, 0.25]))
    """
    ones = np.ones(len(n_rows))
    return {
        "n_estimators": np.rint(np.clip(8 * np.log2(np.maximum(n_rows, 1)) - 4, 12, 130)),
        "max_leaf_nodes": np.rint(np.clip(n_rows / 128, 8, 63)),
        "max_tree_features": ones * min(1.0, 2 / np.sqrt(n_features)),
    }
