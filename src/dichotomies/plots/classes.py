"""`ClassCalibrationDisplay`: the classes with the worst calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import Matrix
from dichotomies.diagnostics import DiagnosticTable
from dichotomies.diagnostics.reliability import ClassCalibration, class_calibration, of_evaluation
from dichotomies.metrics import Evaluation
from dichotomies.plots import style
from dichotomies.plots.style import scaled_text

_LABEL_LENGTH = 28


class ClassCalibrationDisplay:
    """Mean confidence and accuracy of the predicted classes where the two differ most.

    Classes are ranked by the distance of their mean confidence from the confidence interval of their
    accuracy, so that classes with few predictions do not rank high by chance.

    Parameters
    ----------
    calibration : ClassCalibration
        The result of `dichotomies.diagnostics.class_calibration`.

    Attributes
    ----------
    ax_, counts_ax_ : matplotlib axes
        The classes, and the number of predictions of each.
    figure_ : matplotlib figure
        The figure.
    worst_ : DiagnosticTable
        The classes shown, from the top down.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dichotomies.plots import ClassCalibrationDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> bayes = GaussianNB().fit(X[:800], y[:800])
    >>> display = ClassCalibrationDisplay.from_estimator(bayes, X[800:], y[800:], top=3)
    >>> display.worst_["class"]
    array([8, 7, 5])
    """

    ax_: Any
    counts_ax_: Any
    figure_: Any
    worst_: DiagnosticTable

    def __init__(self, calibration: ClassCalibration) -> None:
        self.calibration = calibration

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        top: int = 20,
        sample_weight: npt.ArrayLike | None = None,
        ax: Any = None,
    ) -> ClassCalibrationDisplay:
        """Evaluate any fitted classifier and plot its worst classes.

        Parameters
        ----------
        clf : fitted classifier
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        top : int
            Number of classes.
        sample_weight : array of shape (n_rows,), optional
        ax : matplotlib axes, optional
            Axes to draw into.
        """
        return cls(class_calibration(clf, X, y, sample_weight=sample_weight)).plot(ax, top=top)

    @classmethod
    def from_predictions(
        cls,
        y: npt.ArrayLike,
        proba: npt.ArrayLike,
        *,
        labels: npt.ArrayLike | None = None,
        top: int = 20,
        sample_weight: npt.ArrayLike | None = None,
        ax: Any = None,
    ) -> ClassCalibrationDisplay:
        """Plot the worst classes of given probabilities.

        Parameters
        ----------
        y : array of shape (n_rows,)
        proba : array of shape (n_rows, n_classes)
        labels : array of shape (n_classes,), optional
            Names of the columns; by default the sorted labels in `y`.
        top, sample_weight, ax
            As of `from_estimator`.
        """
        evaluation = Evaluation.from_predictions(y, proba, labels=labels, sample_weight=sample_weight)
        return cls(of_evaluation(evaluation)).plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 20) -> ClassCalibrationDisplay:
        """Draw a line for each of the `top` worst classes, the worst first.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; they are divided in two. By default a new figure.
        top : int
            Number of classes.
        """
        self.worst_ = self.calibration.worst(min(top, int((self.calibration.answered > 0).sum())))
        size = 5.4, 0.24 * len(self.worst_) + 1.3
        ax = style.axes_or_new(ax, size)
        with scaled_text(ax, size):
            self.figure_ = ax.figure
            ((self.ax_, self.counts_ax_),) = style.divided(ax, 1, 2, width_ratios=[4, 1])
            self._draw_classes()
            place = np.arange(len(self.worst_))
            self.counts_ax_.barh(place, self.worst_["answered"], height=0.7, color=style.PALE)
            self._finish(place)
            self.ax_.set_title(self._summary(), loc="left", fontsize="medium", pad=2.4 * style.font_size())
        return self

    def _draw_classes(self) -> None:
        worst = self.worst_
        place = np.arange(len(worst))
        self.ax_.hlines(
            place, worst["confidence"], worst["precision"], color=style.PALE, linewidth=4, zorder=1
        )
        level = f"{self.calibration.level:.0%} interval"
        self.ax_.hlines(
            place, worst["precision_lower"], worst["precision_upper"],
            color=style.AFTER, linewidth=1.2, alpha=0.7, zorder=2, label=level,
        )  # fmt: skip
        dots = {"linestyle": "none", "markersize": 5, "zorder": 3}
        self.ax_.plot(worst["precision"], place, "o", color=style.AFTER, label="precision", **dots)
        self.ax_.plot(
            worst["confidence"],
            place,
            "D",
            color=style.BEFORE,
            markerfacecolor="white",
            label="mean confidence",
            **dots,
        )

    def _finish(self, place: Any) -> None:
        names = [style.plain(_shortened(str(label))) for label in self.worst_["class"].tolist()]
        self.ax_.set(yticks=place, yticklabels=names, xlim=(-0.02, 1.02), xlabel="confidence and precision")
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.legend(
            frameon=False, ncols=3, fontsize="small", loc="lower left", bbox_to_anchor=(-0.02, 1.0)
        )
        self.counts_ax_.set(yticks=[], xlabel="predictions")
        for ax in (self.ax_, self.counts_ax_):
            style.tidy(ax)
            ax.set_ylim(len(place) - 0.4, -0.6)

    def _summary(self) -> str:
        answered = int((self.calibration.answered > 0).sum())
        outside = int((self.calibration.excess > 0).sum())
        by_chance = (1 - self.calibration.level) * answered
        return (
            f"{outside:,} of {answered:,} classes outside their {self.calibration.level:.0%} interval "
            f"(about {by_chance:.0f} by chance)"
        )


def _shortened(text: str) -> str:
    return text if len(text) <= _LABEL_LENGTH else text[: _LABEL_LENGTH - 1] + "…"
