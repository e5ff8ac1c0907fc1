"""Draw depth.svg, the paper's depth figure, and depth_error.svg: a random tree cut at increasing depth.

Run with ``python -m docs.figures.depth``; needs the dataset omniglot in the data folder.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dichotomies import NestedDichotomyClassifier
from dichotomies.diagnostics import DepthCuts, depth_cuts
from dichotomies.plots import DepthCalibrationDisplay, DepthReliabilityDisplay
from experiments.datasets import load

FOLDER = Path(__file__).parent

SMALL_MULTIPLES = [1, 2, 4, 8, 12, 16]


def cuts() -> tuple[DepthCuts, DepthCuts]:
    """Train a random tree on drawers 1 to 15; cut it at some depths and at all, on the other drawers."""
    data = load("omniglot")
    train = data.extra["drawer"] <= 15
    clf = NestedDichotomyClassifier(
        LogisticRegression(C=0.1, max_iter=1000),
        "random",
        internal_calibration=None,
        external_calibration="vector",
        calibration_size=0.1,
        random_state=0,
        verbose=1,
    )
    model = make_pipeline(StandardScaler(), clf).fit(data.X[train], data.y[train])
    test = data.X[~train], data.y[~train]
    return depth_cuts(model, *test, depths=SMALL_MULTIPLES), depth_cuts(model, *test)


def main() -> None:
    """Fit, cut, draw."""
    plt.rcParams.update({"svg.hashsalt": "dichotomies", "font.size": 9})
    title = "1,623 characters, random tree, logistic regression at the nodes"
    some, every = cuts()
    displays = {
        "depth": DepthReliabilityDisplay(some).plot(),
        "depth_error": DepthCalibrationDisplay(every).plot(),
    }
    for name, display in displays.items():
        display.figure_.suptitle(title, fontsize=9)
        display.figure_.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
