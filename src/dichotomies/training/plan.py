"""What to train and how to calibrate it: the parameters of the classifier, resolved and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.inference.pooling import check_pooling
from dichotomies.learners import Effort

if TYPE_CHECKING:
    from dichotomies.calibrators.binary import BinaryCalibrator
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.learners import Learner


@dataclass(frozen=True)
class Plan:
    """See the parameters of the same names of `NestedDichotomyClassifier` and `NestedDichotomyEnsemble`.

    Attributes
    ----------
    external : MulticlassCalibrator or None
        Calibrates the class probabilities: those of the only tree, or of the pool of several.
    member : MulticlassCalibrator or None
        Calibrates the class probabilities of each of several trees before they are pooled.
    pooling : str
        How several trees are pooled.
    """

    learner: Learner
    internal: BinaryCalibrator | None = None
    external: MulticlassCalibrator | None = None
    member: MulticlassCalibrator | None = None
    pooling: str = "geometric"
    cv: Any = 3
    ensemble: bool = False
    calibrated_nodes: Any = "all"
    calibration_size: Any = 0.1
    n_jobs: int | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.cv, np.integer):
            object.__setattr__(self, "cv", int(self.cv))
        object.__setattr__(self, "calibrated_nodes", _checked_nodes(self.calibrated_nodes))
        _check_calibration_size(self.calibration_size)
        check_pooling(self.pooling)

    @property
    def calibrates_outside(self) -> bool:
        """Whether class probabilities are calibrated, which takes rows that the nodes have not seen."""
        return self.external is not None or self.member is not None

    def effort(self, title: str = "") -> Effort:
        """Workers and reports, for the learner."""
        return Effort(self.n_jobs, self.verbose, title)


def _checked_nodes(wanted: Any) -> Any:
    """'all', a share as a float, or depths as a tuple of integers."""
    if isinstance(wanted, str) and wanted == "all":
        return wanted
    if isinstance(wanted, float | np.floating) and 0 < wanted <= 1:
        return float(wanted)
    depths = tuple(wanted) if hasattr(wanted, "__iter__") and not isinstance(wanted, str | dict) else ()
    if depths and all(isinstance(depth, int | np.integer) and depth >= 0 for depth in depths):
        return depths
    raise ValueError(
        "calibrated_nodes must be 'all', a list of depths such as [0, 1, 2], or the share of nodes to "
        f"calibrate as a float in (0, 1], got {wanted!r}."
    )


def _check_calibration_size(size: Any) -> None:
    if isinstance(size, str) and size == "cross-fit":
        return
    if not isinstance(size, float | np.floating) or not 0 < size < 1:
        raise ValueError(
            "calibration_size must be the share of rows to hold out as a float between 0 and 1, or "
            f"'cross-fit', got {size!r}."
        )
