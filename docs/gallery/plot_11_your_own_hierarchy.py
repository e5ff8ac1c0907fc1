"""
Your own hierarchy as the tree
==============================

Labels often have a hierarchy already: codes of occupations, a taxonomy, a tree of products. It can be the tree, and answers can then be
given in its words.
"""

# %%
# Small texts generated for twelve products with paths for names; some words are shared within a group.
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

words = {
    "food/fruit/apple": "apple red crisp cider", "food/fruit/pear": "pear green soft juice",
    "food/fruit/plum": "plum purple stone jam", "food/bread/rye": "rye dark loaf crust",
    "food/bread/baguette": "baguette white loaf french", "tools/garden/spade": "spade dig soil handle",
    "tools/garden/rake": "rake leaves soil handle", "tools/garden/hose": "hose water spray metre",
    "tools/wood/saw": "saw blade teeth cut", "tools/wood/plane": "plane blade smooth cut",
    "tools/wood/chisel": "chisel steel carve cut", "tools/metal/file": "file steel rough smooth",
}  # fmt: skip
shared = {"fruit": "fresh sweet kilo", "bread": "baked flour slice", "garden": "outdoor long plant",
          "wood": "timber workshop sharp", "metal": "workshop iron bench"}  # fmt: skip
rng = np.random.default_rng(0)
texts, labels = [], []
for label, own in words.items():
    group = label.split("/")[1]
    for _ in range(60):
        chosen = [
            *rng.choice(own.split(), 1),
            *rng.choice(shared[group].split(), 2),
            *rng.choice(" ".join(words.values()).split(), 1),
        ]
        texts.append(" ".join(chosen))
        labels.append(label)
X = TfidfVectorizer().fit_transform(texts)
X_train, X_test, y_train, y_test = train_test_split(X, np.array(labels), stratify=labels, random_state=0)

# %%
# ``hierarchy`` reads the groups from the labels; groups with more than two parts are arranged by similarity.
from sklearn.linear_model import LogisticRegression

from dichotomies import NestedDichotomyClassifier
from dichotomies.metrics import evaluate
from dichotomies.structures import STRUCTURES

hierarchy = STRUCTURES.create("hierarchy", delimiter="/")
base = LogisticRegression(C=10)
clf = NestedDichotomyClassifier(base, structure=hierarchy, random_state=0).fit(X_train, y_train)
grown = NestedDichotomyClassifier(base, random_state=0).fit(X_train, y_train)
for name, model in {"your hierarchy": clf, "grown by similarity": grown}.items():
    print(f"{name:20} NLL {evaluate(model, X_test, y_test).metrics['nll']:.3f}")
print(clf.tree_.draw())

# %%
# Nested lists, edges, parents or a dendrogram do as well: ``ClassTree.from_nested``, ``from_edges``, ``from_parents``,
# ``from_linkage``. An answer that is sure enough is named in the words of the hierarchy:
answers = clf.predict_node(X_test, confidence=0.9)
for row in range(0, 40, 8):
    print(f"{answers.names[row]:22} with probability {answers.proba[row]:.2f}; true: {y_test[row]}")

# %%
# How deep answers go at several confidences, and how often they are right:
import matplotlib.pyplot as plt

confidences = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
shares = np.zeros((len(confidences), 4))
right = []
for i, confidence in enumerate(confidences):
    answers = clf.predict_node(X_test, confidence=confidence)
    levels = np.where(
        answers.size == 1,
        3,
        [name.count("/") + 1 if "/" in name or name in ("food", "tools") else 0 for name in answers.names],
    )
    shares[i] = np.bincount(np.minimum(levels, 3), minlength=4) / len(levels)
    right.append(np.mean(answers.holds(y_test)))
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
left = np.zeros(len(confidences))
for level, (name, colour) in enumerate(
    zip(("several groups", "department", "shelf", "product"), ("#e0e0e0", "#cfe3f2", "#56b4e9", "#0072b2"))
):
    ax.barh(range(len(confidences)), shares[:, level], left=left, color=colour, label=name, height=0.7)
    left += shares[:, level]
ax.set_yticks(range(len(confidences)), [f"{c:.0%} asked, {r:.0%} right" for c, r in zip(confidences, right)])
ax.set(xlabel="share of rows answered with", xlim=(0, 1))
ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.45, 1), frameon=False)
ax.spines[["top", "right"]].set_visible(False)
