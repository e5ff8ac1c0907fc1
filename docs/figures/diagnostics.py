"""Draw docs/figures/ledger.png, reliability.svg and class_calibration.svg.

Run with ``python -m docs.figures.diagnostics``; needs the datasets omniglot and letter in the data folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dichotomies import NestedDichotomyClassifier
from dichotomies.plots import ClassCalibrationDisplay, LedgerDisplay, ReliabilityDisplay
from experiments.datasets import load

FOLDER = Path(__file__).parent

#: Name in the legend: (internal, external) calibration.
SCHEMES = {
    "uncalibrated": (None, None),
    "external": (None, "vector"),
    "internal": ("isotonic", None),
    "both": ("isotonic", "vector"),
}


def save(display: Any, name: str) -> None:
    """Write a display's figure; the same bytes every time."""
    metadata = {"Date": None} if name.endswith(".svg") else {"Software": None}
    display.figure_.savefig(FOLDER / name, metadata=metadata, dpi=110)


def ledger() -> None:
    """The NLL ledger of a random tree over 1,623 characters."""
    data = load("omniglot")
    train = data.extra["drawer"] <= 15
    base, params = LogisticRegression(C=0.1, max_iter=1000), {"external_calibration": "vector"}
    params |= {"internal_calibration": None, "calibration_size": 0.1, "random_state": 0}
    clf = NestedDichotomyClassifier(base, "random", **params)
    model = make_pipeline(StandardScaler(), clf).fit(data.X[train], data.y[train])
    save(LedgerDisplay.from_estimator(model, data.X[~train], data.y[~train]), "ledger.png")


def schemes() -> None:
    """Four ways to calibrate naive Bayes on the 26 letters, and its classes uncalibrated."""
    data = load("letter")
    X, X_test, y, y_test = train_test_split(data.X, data.y, random_state=0, stratify=data.y)
    models = {}
    for name, (internal, external) in SCHEMES.items():
        params = {"internal_calibration": internal, "external_calibration": external}
        params |= {"calibration_size": 0.1, "cv": 3}
        models[name] = NestedDichotomyClassifier(GaussianNB(), "random", random_state=0, **params).fit(X, y)
    save(ReliabilityDisplay.from_estimator(models, X_test, y_test), "reliability.svg")
    display = ClassCalibrationDisplay.from_estimator(models["both"], X_test, y_test, top=15)
    save(display, "class_calibration.svg")


def main() -> None:
    """Draw everything."""
    plt.rcParams.update({"svg.hashsalt": "dichotomies", "font.size": 9})
    ledger()
    schemes()


if __name__ == "__main__":
    main()
