"""Displays of the tree cut at increasing depth: reliability diagrams, and calibration against the depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, Matrix
from dichotomies.diagnostics.depth import CutStage, DepthCuts, depth_cuts
from dichotomies.diagnostics.evaluated_model import fitted_dichotomy
from dichotomies.metrics._input import check_choice
from dichotomies.plots import style
from dichotomies.plots.style import scaled_text

READINGS = ("top_label", "pooled")


class _DepthDisplay:
    """Base class: plots of `DepthCuts`, which are computed here for a fitted nested dichotomy."""

    ax_: Any
    axes_: Any
    figure_: Any

    #: Number of depths shown by default; None for those of `depth_cuts`.
    _most_depths: ClassVar[int | None] = None

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
    ) -> Self:
        """Cut a fitted nested dichotomy and plot.

        Parameters
        ----------
        clf, X, y, n_bins, sample_weight
            See `dichotomies.diagnostics.depth_cuts`.
        depths : sequence of int, optional
            Depths of the cuts; by default all, or up to six where each has a diagram.
        reading, ax
            See `plot`.
        """
        if depths is None and cls._most_depths is not None:
            depths = style.thinned(range(1, fitted_dichotomy(clf).tree_.max_depth + 1), cls._most_depths)
        cuts = depth_cuts(clf, X, y, depths=depths, n_bins=n_bins, sample_weight=sample_weight)
        return cls(cuts).plot(ax, reading=reading)

    def plot(self, ax: Any = None, *, reading: str = "top_label") -> Self:
        """Draw the cuts; see the displays."""
        raise NotImplementedError


class DepthReliabilityDisplay(_DepthDisplay):
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

    _most_depths = 6

    def plot(self, ax: Any = None, *, reading: str = "top_label") -> Self:
        """Draw a column of diagrams for each depth.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; they are divided. By default a new figure.
        reading : {"top_label", "pooled"}
            The most probable group of each row, or all groups of all rows (as in the paper's figure).
        """
        check_choice("reading", reading, READINGS)
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


class DepthCalibrationDisplay(_DepthDisplay):
    """Confidence, accuracy, ECE and number of groups of the cut tree, against depth.

    Parameters
    ----------
    cuts : DepthCuts
        The result of `dichotomies.diagnostics.depth_cuts`.

    Attributes
    ----------
    axes_ : ndarray of matplotlib axes of shape (3,)
        Confidence and accuracy; ECE; number of groups.
    ax_ : matplotlib axes
        The axes that contain them.
    figure_ : matplotlib figure
        The figure.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.plots import DepthCalibrationDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(structure="class-balanced", random_state=0)
    >>> clf = clf.fit(X[:1000] / 16, y[:1000])
    >>> DepthCalibrationDisplay.from_estimator(clf, X[1000:] / 16, y[1000:]).axes_.shape
    (3,)
    """

    def plot(self, ax: Any = None, *, reading: str = "top_label") -> Self:
        """Draw three panels, one above the other, with 95 % bands.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; they are divided. By default a new figure.
        reading : {"top_label", "pooled"}
            Curves that the ECE is computed from.
        """
        check_choice("reading", reading, READINGS)
        size = 4.6, 5.2
        self.ax_ = style.axes_or_new(ax, size)
        with scaled_text(self.ax_, size):
            self.figure_ = self.ax_.figure
            self.axes_ = style.divided(self.ax_, 3, 1, height_ratios=[3, 3, 1.2])[:, 0]
            self._draw_stage(self.cuts.before, "before", style.BEFORE, reading)
            if self.cuts.after is not None:
                self._draw_stage(self.cuts.after, "after", style.AFTER, reading)
            self.axes_[2].bar(self.cuts.depths, self.cuts.n_groups, width=0.8, color=style.PALE)
            self._finish(reading)
        return self

    def _draw_stage(self, stage: CutStage, name: str, colour: str, reading: str) -> None:
        shares, errors, _ = self.axes_
        self._draw(shares, stage.accuracy, stage.accuracy_error, f"accuracy, {name}", colour, "-", "o")
        self._draw(shares, stage.confidence, None, f"confidence, {name}", colour, "--", "s")
        ece, error = getattr(stage, f"ece_{reading}"), getattr(stage, f"ece_{reading}_error")
        self._draw(errors, ece, error, f"{name} calibration", colour, "-", "o")

    def _draw(
        self,
        ax: Any,
        values: FloatArray,
        error: FloatArray | None,
        label: str,
        colour: str,
        line: str,
        mark: str,
    ) -> None:
        depths = self.cuts.depths
        face = colour if line == "-" else "white"
        ax.plot(
            depths, values, line, marker=mark, label=label, color=colour,
            markerfacecolor=face, markersize=3.5, linewidth=1.3,
        )  # fmt: skip
        if error is not None:
            half = style.Z_95 * error
            ax.fill_between(depths, values - half, values + half, color=colour, alpha=0.18, linewidth=0)

    def _finish(self, reading: str) -> None:
        shares, errors, groups = self.axes_
        shares.set(ylim=(0, 1.02), ylabel="accuracy, confidence")
        errors.set(ylabel="ECE, top label" if reading == "top_label" else "ECE, pooled")
        errors.set_ylim(bottom=0)
        groups.set(yscale="log", ylabel="groups", xlabel="depth of the cut")
        groups.set_ylim(bottom=1)
        groups.minorticks_off()
        style.count_ticks(groups.yaxis)
        shares.legend(frameon=False, fontsize="small", ncols=2)
        errors.legend(frameon=False, fontsize="small")
        depths = self.cuts.depths
        for ax in self.axes_:
            style.tidy(ax)
            ax.set_xlim(depths[0] - 0.6, depths[-1] + 0.6)
            ax.xaxis.get_major_locator().set_params(integer=True)
        for ax in (shares, errors):
            ax.set_xticklabels([])
