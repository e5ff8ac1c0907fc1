"""`ReliabilityDisplay`: accuracy against confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import Matrix
from dichotomies.diagnostics.reliability import Reliability, evaluated, reliability
from dichotomies.metrics import Evaluation
from dichotomies.plots import style
from dichotomies.plots.style import scaled_text


class ReliabilityDisplay:
    """Reliability diagram of one or more models, with 95 % bands and a histogram of the rows below.

    Parameters
    ----------
    curves : mapping of str to Reliability
        The curve of each model, by its name.
    xlabel, ylabel : str
        Axis labels.

    Attributes
    ----------
    ax_, counts_ax_ : matplotlib axes
        The diagram, and the histogram below it.
    figure_ : matplotlib figure
        The figure they are in.
    lines_ : list of matplotlib lines
        The curves.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dichotomies import CalibratedClassifier
    >>> from dichotomies.plots import ReliabilityDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> bayes = GaussianNB().fit(X[:800], y[:800])
    >>> calibrated = CalibratedClassifier(bayes).fit(X[800:1200], y[800:1200])
    >>> models = {"naive Bayes": bayes, "calibrated": calibrated}
    >>> display = ReliabilityDisplay.from_estimator(models, X[1200:], y[1200:])
    >>> [line.get_label() for line in display.lines_]
    ['naive Bayes: ECE 0.178', 'calibrated: ECE 0.095']
    """

    ax_: Any
    counts_ax_: Any
    figure_: Any
    lines_: list[Any]

    def __init__(
        self,
        curves: Mapping[str, Reliability],
        *,
        xlabel: str = "confidence",
        ylabel: str = "accuracy",
    ) -> None:
        self.curves = dict(curves)
        self.xlabel = xlabel
        self.ylabel = ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        pos_label: Any = None,
        n_bins: int = 20,
        sample_weight: npt.ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Evaluate one or several fitted classifiers and plot.

        Parameters
        ----------
        estimator : fitted classifier, or mapping of names to fitted classifiers
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        pos_label : label, optional
            Plot the probability of this class; by default that of each row's most probable class.
        n_bins : int
            Number of bins of equal width.
        sample_weight : array of shape (n_rows,), optional
            Weight of each row, as a count.
        name : str, optional
            Name of the model in the legend; by default its class name.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        models = (
            estimator if isinstance(estimator, Mapping) else {name or type(estimator).__name__: estimator}
        )
        found = {key: evaluated(model, X, y, n_bins, sample_weight) for key, model in models.items()}
        return cls._from(found, pos_label).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y: npt.ArrayLike,
        proba: Any,
        *,
        labels: npt.ArrayLike | None = None,
        pos_label: Any = None,
        n_bins: int = 20,
        sample_weight: npt.ArrayLike | None = None,
        name: str = "model",
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Plot class probabilities, or a mapping of names to class probabilities.

        One score per row is plotted as the probability of the second of two labels (of 1, or True).

        Parameters
        ----------
        y : array of shape (n_rows,)
        proba : array of shape (n_rows, n_classes) or (n_rows,), or mapping of names to such arrays
        labels : array of shape (n_classes,), optional
            Names of the columns; by default the sorted labels in `y`.
        pos_label, n_bins, sample_weight, name, ax
            As of `from_estimator`.
        """
        given = proba if isinstance(proba, Mapping) else {name: proba}
        settings: Any = {"labels": labels, "sample_weight": sample_weight, "n_bins": n_bins}
        found = {key: Evaluation.from_predictions(y, each, **settings) for key, each in given.items()}
        if pos_label is None and found and all(np.ndim(each) == 1 for each in given.values()):
            pos_label = next(iter(found.values())).labels[1].item()
        return cls._from(found, pos_label).plot(ax)

    @classmethod
    def _from(cls, evaluations: Mapping[str, Evaluation], pos_label: Any) -> ReliabilityDisplay:
        if not evaluations:
            raise ValueError("There is no model to draw: the mapping of names to models is empty.")
        curves = {name: reliability(each, pos_label) for name, each in evaluations.items()}
        if pos_label is None:
            return cls(curves)
        named = style.plain(pos_label)
        return cls(curves, xlabel=f"probability of {named}", ylabel=f"frequency of {named}")

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; they are divided in two. By default a new figure.
        """
        size = 3.8, 4.6
        ax = style.axes_or_new(ax, size)
        with scaled_text(ax, size):
            self.figure_ = ax.figure
            (self.ax_,), (self.counts_ax_,) = style.divided(ax, 2, 1, height_ratios=[4, 1])
            style.draw_diagonal(self.ax_)
            self.lines_ = []
            for i, (name, curve) in enumerate(self.curves.items()):
                colour = style.COLOURS[i % len(style.COLOURS)]
                line = style.draw_curve(self.ax_, curve, colour, style.MARKERS[i % len(style.MARKERS)])
                line.set_label(f"{style.plain(name)}: ECE {curve.ece:.3f}")
                self.counts_ax_.stairs(curve.count, curve.edges, color=colour, linewidth=1.2)
                self.counts_ax_.stairs(curve.count, curve.edges, color=colour, alpha=0.15, fill=True)
                self.lines_.append(line)
            self._finish()
        return self

    def _finish(self) -> None:
        style.unit_square(self.ax_)
        self.ax_.set(ylabel=self.ylabel, xticklabels=[])
        self.ax_.legend(frameon=False, loc="best", fontsize="small")
        self.counts_ax_.set(xlim=self.ax_.get_xlim(), xlabel=self.xlabel, ylabel="rows", xticks=[0, 0.5, 1])
        self.counts_ax_.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        style.count_ticks(self.counts_ax_.yaxis)
        for axes in (self.ax_, self.counts_ax_):
            style.tidy(axes)
