"""Parameters of gradient boosting that follow the number of rows of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import IntArray


def by_rows(n_rows: IntArray, n_features: int) -> dict[str, npt.NDArray[Any]]:
    """Values of the parameters that are "auto"."""
    ones = np.ones(len(n_rows))
    return {
        "n_estimators": 50 * ones,
        "max_leaf_nodes": 31 * ones,
        "learning_rate": 0.1 * ones,
        "l2_regularization": 1.0 * ones,
        "max_tree_features": ones,
        "node_bins": np.full(len(n_rows), 256),
    }
