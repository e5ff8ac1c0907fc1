"""Draw the paper's two figures again: paper_reliability.svg and paper_depth.svg.

Run with ``python -m docs.figures.paper``; needs the datasets optdigits and kanji_fonts in the data folder,
which stand in for `credit` and ALOI.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier
from dichotomies.diagnostics import depth_cuts
from dichotomies.plots import DepthReliabilityDisplay, ReliabilityDisplay
from experiments.datasets import load

FOLDER = Path(__file__).parent

#: The ECE printed in the paper's figure at depths 1 to 6: before and after vector scaling.
PRINTED = {
    "before": (0.028, 0.052, 0.098, 0.145, 0.211, 0.258),
    "after": (0.038, 0.033, 0.062, 0.091, 0.089, 0.078),
}
#: Where the tree is cut in the picture: ours is well calibrated farther down than the paper's.
PANELS = (3, 6, 9, 12, 15, 18)


def reliability() -> ReliabilityDisplay:
    """One binary problem, whether a digit is five or more, by naive Bayes before and after calibration."""
    data = load("optdigits")
    X, X_test, y, y_test = train_test_split(data.X, data.y >= 5, random_state=0, stratify=data.y)
    models = {
        title: NestedDichotomyClassifier(
            GaussianNB(), internal_calibration=calibration, external_calibration=None, cv=3, random_state=0
        ).fit(X, y)
        for title, calibration in {
            "naive Bayes": None,
            "Platt scaling": "platt",
            "isotonic regression": "isotonic",
        }.items()
    }
    return ReliabilityDisplay.from_estimator(models, X_test, y_test, pos_label=True)


def depth() -> DepthReliabilityDisplay:
    """A random tree with logistic regression, cut at some depths, before and after vector scaling."""
    data = load("kanji_fonts")
    few = np.isin(data.y, np.unique(data.y)[:1000])
    X, y, test = data.X[few] / 15, data.y[few], data.extra["font"][few] % 10 == 0
    clf = NestedDichotomyClassifier(
        LogisticRegression(max_iter=1000),
        "random",
        internal_calibration=None,
        external_calibration="vector",
        calibration_size=0.1,
        random_state=0,
    ).fit(X[~test], y[~test])
    print("| depth | paper, before | ours, before | paper, after | ours, after |")
    print("| --- | --- | --- | --- | --- |")
    cuts = depth_cuts(clf, X[test], y[test], depths=sorted({*range(1, 7), *PANELS}))
    printed = [*zip(*PRINTED.values(), strict=True), *[("–", "–")] * (len(cuts.depths) - 6)]
    for i, (before, after) in enumerate(printed):
        ours = cuts.before.ece_top_label[i], cuts.after.ece_top_label[i]
        print(f"| {cuts.depths[i]} | {before} | {ours[0]:.3f} | {after} | {ours[1]:.3f} |")
    return DepthReliabilityDisplay(depth_cuts(clf, X[test], y[test], depths=PANELS)).plot()


def main() -> None:
    """Draw both."""
    plt.rcParams.update({"svg.hashsalt": "dichotomies", "font.size": 9})
    for name, display in {"paper_reliability": reliability(), "paper_depth": depth()}.items():
        display.figure_.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
