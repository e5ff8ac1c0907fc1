"""Draw docs/figures/depth.svg: confidence and accuracy of a random tree, cut at every depth.

Run with ``python docs/figures/depth.py``; needs the dataset omniglot in the data folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies.datasets import load

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray

DEPTHS = range(1, 15)


def at_depth(tree: ClassTree, proba: FloatArray, codes: IntArray, depth: int) -> tuple[float, float]:
    """Mean confidence and accuracy of the most probable group of classes at a depth."""
    cut = tree.cut(depth)
    groups = np.add.reduceat(proba[:, tree.leaf_order], cut.start, axis=1)
    right = groups.argmax(axis=1) == cut.group_of_class[codes]
    return float(groups.max(axis=1).mean()), float(right.mean())


def main() -> None:
    """Fit, cut, draw."""
    data = load("omniglot")
    train = data.extra["drawer"] <= 15
    scaler = StandardScaler().fit(data.X[train])
    clf = NestedDichotomyClassifier(LogisticRegression(C=0.1, max_iter=1000), random_state=0, verbose=1)
    clf.fit(scaler.transform(data.X[train]), data.y[train])
    proba = clf.predict_proba(scaler.transform(data.X[~train]))
    codes = np.searchsorted(clf.classes_, data.y[~train])
    confidence, accuracy = np.transpose([at_depth(clf.tree_, proba, codes, depth) for depth in DEPTHS])

    plt.rcParams.update({"svg.hashsalt": "dichotomies", "font.size": 9})
    figure, axes = plt.subplots(figsize=(5.2, 2.8), layout="constrained")
    axes.fill_between(DEPTHS, confidence, accuracy, color="#0072B2", alpha=0.15)
    axes.plot(DEPTHS, accuracy, "o-", color="#0072B2", label="how often it is right")
    axes.plot(DEPTHS, confidence, "s--", color="#D55E00", label="how sure it says it is")
    axes.set(xlabel="depth at which the tree is cut", ylabel="share of test rows", ylim=(0, 1))
    axes.set_title("1,623 characters, random tree, logistic regression at the nodes", fontsize=9)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
