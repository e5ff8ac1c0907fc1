"""`Drift`: how far an updated model may be from one that is fitted to all rows again."""

from __future__ import annotations

from dataclasses import dataclass

from dichotomies._common.typing import BoolArray
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Optional, Size


@savable(
    "drift",
    n_updates=Size("n_updates", 0),
    n_rows_fitted=Size("n_rows_fitted", 0),
    n_rows_added=Size("n_rows_added", 0),
    n_classes_added=Size("n_classes_added", 0),
    n_classes_forgotten=Size("n_classes_forgotten", 0),
    is_retrained=Array("boolean", "n_nodes"),
    nll_before=Optional(float),
    nll_after=Optional(float),
)
@dataclass(frozen=True, eq=False)
class Drift:
    """Changes of a model since it was fitted.

    Nodes that were trained again are what a refit of the same tree would give; what an update cannot give is
    another tree, and another choice of learner and calibrators.

    Attributes
    ----------
    n_updates : int
        Calls of `update`, `forget_class` and `partial_fit` since the model was fitted.
    n_rows_fitted, n_rows_added : int
        Rows that it was fitted to, and rows added since.
    n_classes_added, n_classes_forgotten : int
    is_retrained : (n_nodes,)
        True for the forest's different nodes that were trained since.
    nll_before, nll_after : float or None
        Of the last rows added, those of classes that were known: NLL by the model before it was given them,
        and by the updated one out of fold. None where there were no such rows, or no folds.
    """

    n_updates: int
    n_rows_fitted: int
    n_rows_added: int
    n_classes_added: int
    n_classes_forgotten: int
    is_retrained: BoolArray
    nll_before: float | None = None
    nll_after: float | None = None

    @property
    def share_retrained(self) -> float:
        """Share of the nodes that were trained since the fit."""
        return float(self.is_retrained.mean())

    @property
    def share_of_rows(self) -> float:
        """Rows added since the fit, as a share of all rows seen."""
        return self.n_rows_added / max(1, self.n_rows_fitted + self.n_rows_added)

    def __str__(self) -> str:
        said = {
            "updates": self.n_updates,
            "rows added": f"{self.n_rows_added:,} to {self.n_rows_fitted:,}",
            "classes added": self.n_classes_added,
            "classes forgotten": self.n_classes_forgotten,
            "nodes trained since the fit": f"{self.is_retrained.sum():,} of {len(self.is_retrained):,}",
        }
        if self.nll_before is not None:
            after = "" if self.nll_after is None else f", {self.nll_after:.3f} after"
            said["NLL of the last rows of known classes"] = f"{self.nll_before:.3f} before{after}"
        return "; ".join(f"{name}: {value}" for name, value in said.items())
