"""
Which tree?
===========

The tree decides how easy the questions at its nodes are. Here is the one that is grown for handwritten digits, drawn with the mean
image of the classes below each node, and what a random tree costs in comparison.
"""

# %%
# By default similar classes are put together (2-means on the centroids of the classes): the upper nodes are then easy, and the hard
# questions are left to nodes that see only the two or three classes concerned.
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dichotomies import NestedDichotomyClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
base = LogisticRegression(C=0.01, max_iter=1000)
clf = NestedDichotomyClassifier(base, random_state=0).fit(X_train, y_train)
tree = clf.tree_
print(tree.draw())

# %%
# Any other structure is a name away; `dichotomies list` shows them all. The negative log-likelihood (NLL) on test rows is lower
# where similar classes are together:
from sklearn.metrics import log_loss

for structure in ("random", "class-balanced", "2-means", "ward", "average", "single"):
    other = NestedDichotomyClassifier(base, structure, random_state=0).fit(X_train, y_train)
    nll = log_loss(y_test, other.predict_proba(X_test))
    print(f"{structure:15} depth {other.tree_.max_depth}  NLL {nll:.3f}")

# %%
# The default tree as an icicle. A node is a range of leaves, so the whole tree is a few flat arrays: ``start``, ``split``, ``stop``
# and ``depth`` of each node, and ``leaf_order``, the class at each leaf.
import matplotlib.pyplot as plt
import numpy as np

means = np.array([X_train[y_train == label].mean(axis=0) for label in tree.classes])
leaf_means = means[tree.leaf_order]
boxes = [(a, b, d) for a, b, d in zip(tree.start, tree.stop, tree.depth)]
boxes += [(i, i + 1, d) for i, d in enumerate(tree.leaf_depth)]

figure, ax = plt.subplots(figsize=(9, 5.2), layout="constrained")
for start, stop, depth in boxes:
    is_leaf = stop - start == 1
    face = "#dcecf7" if is_leaf else "#f4f4f4"
    ax.add_patch(
        plt.Rectangle((start, depth), stop - start, 1, facecolor=face, edgecolor="white", linewidth=3)
    )
    image = leaf_means[start:stop].mean(axis=0).reshape(8, 8)
    middle = (start + stop) / 2
    extent = (middle - 0.34, middle + 0.34, depth + 0.84, depth + 0.08)
    ax.imshow(
        image, cmap="gray_r", extent=extent, aspect="auto", interpolation="bilinear", zorder=2, alpha=0.85
    )
    if is_leaf:
        ax.text(
            start + 0.06, depth + 0.93, tree.leaf_labels[start], fontsize=9, color="#0072b2", weight="bold"
        )
ax.set(xlim=(0, tree.n_classes), ylim=(tree.max_depth + 1, 0), xticks=[], ylabel="decisions taken")
ax.set_title("The learned tree: mean image of the classes below each node", loc="left", fontsize=11)
ax.spines[:].set_visible(False)
