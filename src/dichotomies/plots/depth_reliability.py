"""`DepthReliabilityDisplay`: reliability of the tree cut at increasing depth, the paper's depth figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import Matrix
from dichotomies.diagnostics.depth import CutStage, DepthCuts, depth_cuts
from dichotomies.diagnostics.evaluated_model import fitted_dichotomy
from dichotomies.plots import style
from dichotomies.plots.small_axes import scaled_text

READINGS = ("top_label", "pooled")

_MAX_PANELS = 6


class DepthReliabilityDisplay:
    """Reliability diagrams by depth, before external calibration (top row) and after it (bottom row).

    Parameters
    ----------
    cuts : DepthCuts
        The result of `dichotomies.diagnostics.depth_cuts`.

    Attributes
    ----------
    axes_ : ndarray of matplotlib axes of shape (1 or 2, n_depths)
        The diagrams, each with a histogram of its predictions at the bottom.
    ax_ : matplotlib axes
        The axes that contain them.
    figure_ : matplotlib figure
        The figure.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.plots import DepthReliabilityDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(structure="class-balanced", random_state=0)
    >>> clf = clf.fit(X[:1000] / 16, y[:1000])
    >>> DepthReliabilityDisplay.from_estimator(clf, X[1000:] / 16, y[1000:]).axes_.shape
    (2, 4)
    """

    ax_: Any
    axes_: Any
    figure_: Any

    def __init__(self, cuts: DepthCuts) -> None:
        self.cuts = cuts

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        depths: Sequence[int] | None = None,
        n_bins: int = 20,
        sample_weight: npt.ArrayLike | None = None,
        reading: str = "top_label",
        ax: Any = None,
    ) -> DepthReliabilityDisplay:
        """Cut a fitted nested dichotomy and plot.

        Parameters
        ----------
        clf, X, y, n_bins, sample_weight
            See `dichotomies.diagnostics.depth_cuts`.
        depths : sequence of int, optional
            Depths of the cuts; by default up to six, from the root's groups to the classes.
        reading, ax
            See `plot`.
        """
        if depths is None:
            depths = style.thinned(range(1, fitted_dichotomy(clf).tree_.max_depth + 1), _MAX_PANELS)
        cuts = depth_cuts(clf, X, y, depths=depths, n_bins=n_bins, sample_weight=sample_weight)
        return cls(cuts).plot(ax, reading=reading)

    def plot(self, ax: Any = None, *, reading: str = "top_label") -> DepthReliabilityDisplay:
        """Draw a column of diagrams for each depth.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; they are divided. By default a new figure.
        reading : {"top_label", "pooled"}
            The most probable group of each row, or all groups of all rows (as in the paper's figure).
        """
        check_reading(reading)
        cuts = self.cuts
        stages = (
            {"before": cuts.before} if cuts.after is None else {"before": cuts.before, "after": cuts.after}
        )
        size = 1.3 * len(cuts.depths) + 0.5, 1.5 * len(stages) + 0.5
        self.ax_ = style.axes_or_new(ax, size)
        with scaled_text(self.ax_, size):
            self.figure_ = self.ax_.figure
            self.axes_ = style.divided(self.ax_, len(stages), len(cuts.depths))
            for panels, (name, stage) in zip(self.axes_, stages.items(), strict=True):
                for i, panel in enumerate(panels):
                    self._panel(panel, stage, i, reading, style.BEFORE if name == "before" else style.AFTER)
                panels[0].set_ylabel(f"accuracy\n{name} calibration")
            self._label_edges()
        return self

    def _panel(self, panel: Any, stage: CutStage, i: int, reading: str, colour: str) -> None:
        curve = getattr(stage, reading)[i]
        style.draw_diagonal(panel)
        # counts on a logarithmic scale in the lowest quarter: they only show where the rows are
        height = 0.25 * np.log1p(curve.count) / np.log1p(curve.count.max())
        panel.stairs(height, curve.edges, fill=True, color=style.PALE, zorder=0)
        style.draw_curve(panel, curve, colour, markersize=2.2, linewidth=1.1)
        panel.set_title(f"ECE {curve.ece:.3f}", fontsize="small", pad=3)
        style.unit_square(panel)
        panel.set_aspect("equal")
        style.tidy(panel)

    def _label_edges(self) -> None:
        for panel, depth, n_groups in zip(self.axes_[0], self.cuts.depths, self.cuts.n_groups, strict=True):
            panel.set_title(
                f"depth {depth}\n{n_groups:,} group{'s' if n_groups > 1 else ''}\n{panel.get_title()}",
                fontsize="small",
                pad=3,
            )
        for panel in self.axes_[:, 1:].ravel():
            panel.set_yticklabels([])
        for panel in self.axes_[:-1].ravel():
            panel.set_xticklabels([])
        self.axes_[-1, self.axes_.shape[1] // 2].set_xlabel("confidence", loc="left")


def check_reading(reading: str) -> None:
    """Raise if `reading` is not one of the supported ones."""
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(map(repr, READINGS))}, got {reading!r}.")
