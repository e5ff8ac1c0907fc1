"""
Sets, and answers as deep as the evidence
=========================================

One label and its probability is not always the answer that is wanted. A *prediction set* is promised to hold the true class as often as
asked; ``predict_node`` names a group of the tree where the single class is uncertain.
"""

# %%
# Noisy digits. ``prediction_sets=2`` prepares both kinds of answers on the folds that calibration has anyway.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dichotomies import NestedDichotomyClassifier

X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=5, size=X.shape)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
clf = NestedDichotomyClassifier(prediction_sets=2, random_state=0).fit(X_train, y_train)
print(f"accuracy of the single label: {clf.score(X_test, y_test):.2f}")

# %%
# Sets at several coverages: how often they hold the true class, and how large they are.
coverages = [0.8, 0.85, 0.9, 0.95, 0.98]
held, size = [], []
for coverage in coverages:
    sets = clf.predict_set(X_test, coverage=coverage)
    held.append(np.mean([label in labels for label, labels in zip(y_test, sets)]))
    size.append(np.mean([len(labels) for labels in sets]))
    print(f"asked for {coverage:.2f}: held {held[-1]:.3f}, {size[-1]:.2f} labels on average")

# %%
# An answer by confidence: the deepest node of the tree that is at least so probable, or the union of two.
answers = clf.predict_node(X_test, confidence=0.9)
unions = clf.predict_node(X_test, confidence=0.9, groups=2)
for row in np.flatnonzero(answers.size > 1)[:4]:
    print(f"row {row:3}: {answers.names[row]:28} or, as two groups, {unions.names[row]}; true: {y_test[row]}")

# %%
# Coverage and size on the left; on the right four uncertain images with the answers that are given for them.
import matplotlib.pyplot as plt

figure = plt.figure(figsize=(10, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
ax = left.subplots()
ax.plot(coverages, coverages, color="0.7", linewidth=1)
ax.plot(coverages, held, "o-", color="#0072b2")
ax.set(xlabel="coverage asked for", ylabel="share of sets that hold the true class")
for x, share, n in zip(coverages, held, size):
    ax.annotate(
        f"{n:.1f}", (x, share), textcoords="offset points", xytext=(-4, 8), fontsize=9, color="#0072b2"
    )
ax.set_title("with the mean number of labels", fontsize=10, loc="left")
ax.spines[["top", "right"]].set_visible(False)
uncertain = np.argsort(clf.predict_proba(X_test).max(axis=1))[::12][:4]
for row, ax in zip(uncertain, right.subplots(2, 2).flat):
    labels = ", ".join(map(str, clf.predict_set(X_test[[row]], coverage=0.95)[0]))
    ax.imshow(X_test[row].reshape(8, 8), cmap="gray_r", interpolation="bilinear")
    ax.set_title(
        f"set {{{labels}}}\nnode: {clf.predict_node(X_test[[row]], confidence=0.9, groups=2).names[0]}",
        fontsize=9,
    )
    ax.axis("off")
