"""Draw docs/figures/depth.svg: how sure and how right a random tree is, cut at every depth.

Once as it is and once calibrated.

Run with ``python docs/figures/depth.py``; needs the dataset omniglot in the data folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies.datasets import load

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray, LabelArray

DEPTHS = range(1, 15)


def at_depth(tree: ClassTree, proba: FloatArray, codes: IntArray, depth: int) -> tuple[float, float]:
    """Mean confidence and accuracy of the most probable group of classes at a depth."""
    cut = tree.cut(depth)
    groups = np.add.reduceat(proba[:, tree.leaf_order], cut.start, axis=1)
    right = groups.argmax(axis=1) == cut.group_of_class[codes]
    return float(groups.max(axis=1).mean()), float(right.mean())


def curves(X: FloatArray, y: LabelArray, X_test: FloatArray, y_test: LabelArray, external: str | None) -> Any:
    """Confidence and accuracy at every depth, shape (2, n_depths)."""
    learner = LogisticRegression(C=0.1, max_iter=1000)
    clf = NestedDichotomyClassifier(learner, external_calibration=external, random_state=0, verbose=1)
    proba = clf.fit(X, y).predict_proba(X_test)
    codes = np.searchsorted(clf.classes_, y_test)
    return np.transpose([at_depth(clf.tree_, proba, codes, depth) for depth in DEPTHS])


def main() -> None:
    """Fit, cut, draw."""
    data = load("omniglot")
    train = data.extra["drawer"] <= 15
    scaler = StandardScaler().fit(data.X[train])
    rows = scaler.transform(data.X[train]), data.y[train], scaler.transform(data.X[~train]), data.y[~train]

    plt.rcParams.update({"svg.hashsalt": "dichotomies", "font.size": 9})
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.8), sharey=True, layout="constrained")
    titles = {None: "as it is", "vector": "calibrated (the default)"}
    for axes, external in zip(panels, titles, strict=True):
        confidence, accuracy = curves(*rows, external)
        axes.fill_between(DEPTHS, confidence, accuracy, color="#0072B2", alpha=0.15)
        axes.plot(DEPTHS, accuracy, "o-", color="#0072B2", label="how often it is right")
        axes.plot(DEPTHS, confidence, "s--", color="#D55E00", label="how sure it says it is")
        axes.set(xlabel="depth at which the tree is cut", ylim=(0, 1), title=titles[external])
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of test rows")
    panels[0].legend(frameon=False)
    figure.suptitle("1,623 characters, random tree, logistic regression at the nodes", fontsize=9)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
