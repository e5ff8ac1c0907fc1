"""Draw docs/figures/nested_calibration.svg: one uncertain row, calibrated through a tree.

Run with ``python -m docs.figures.nested``; the digits come with scikit-learn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from dichotomies import CalibratedClassifier, ClassTree

FOLDER = Path(__file__).parent
BEFORE, AFTER = "0.65", "tab:blue"


def nodes_of(tree: ClassTree, p: Any) -> Any:
    """Probability of going left at each node, given the class probabilities."""
    sums = np.concatenate([[0.0], np.cumsum(np.maximum(p[tree.leaf_order], 1e-12))])
    left = sums[tree.split] - sums[tree.start]
    return left / (sums[tree.stop] - sums[tree.start])


def draw_tree(axes: Any, tree: ClassTree, before: Any, after: Any) -> None:
    """Draw the tree, leaves below, with the probability of going left before and after at each node."""
    x, y = (tree.start + tree.stop - 1) / 2, -tree.depth.astype(float)
    floor = y.min() - 1
    for node in range(tree.n_nodes):
        for child in (tree.left[node], tree.right[node]):
            end = (x[child], y[child]) if child >= 0 else (~child, floor)
            axes.plot([x[node], end[0]], [y[node], end[1]], color="0.8", linewidth=1, zorder=1)
        for text, color, shift in ((before[node], BEFORE, 0.2), (after[node], AFTER, -0.2)):
            axes.text(
                x[node], y[node] + shift, f"{text:.2f}", color=color, ha="center", va="center", zorder=3
            )
        axes.scatter(x[node], y[node], s=520, color="white", zorder=2)
    for position, label in enumerate(tree.leaf_labels):
        axes.text(position, floor - 0.3, str(label), ha="center", va="center")
    axes.set(ylim=(floor - 0.6, 0.6), title="the chance of going left at every node: before, after")
    axes.axis("off")


def main() -> None:
    """Fit, choose a row and draw it."""
    X, y = load_digits(return_X_y=True)
    clf = CalibratedClassifier(GaussianNB(var_smoothing=1e-3), "nested").fit(X[:1200], y[:1200])
    flat, calibrated = clf.estimator_.predict_proba(X[1200:]), clf.predict_proba(X[1200:])
    truth = y[1200:]
    # a confident mistake that calibration takes back
    gain = calibrated[np.arange(len(truth)), truth] - flat[np.arange(len(truth)), truth]
    row = int(np.argmax(np.where(calibrated.argmax(axis=1) == truth, gain, -1)))
    tree = clf.tree_
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), width_ratios=(1, 1.9, 1))
    draw_tree(middle, tree, nodes_of(tree, flat[row]), nodes_of(tree, calibrated[row]))
    for axes, p, color, title in (
        (left, flat[row], BEFORE, "any classifier's probabilities"),
        (right, calibrated[row], AFTER, "multiplied down again"),
    ):
        axes.bar([str(label) for label in tree.leaf_labels], p[tree.leaf_order], color=color)
        place = int(tree.leaf_position[truth[row]])
        axes.annotate("true class", (place, p[truth[row]] + 0.02), (place, 0.9), ha="center",
                      arrowprops={"arrowstyle": "-", "color": "0.5"})  # fmt: skip
        axes.set(ylim=(0, 1.02), title=title)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(FOLDER / "nested_calibration.svg", metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "nested"
    main()
