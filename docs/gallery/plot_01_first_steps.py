"""
First steps
===========

Fit a tree and ten trees to images of handwritten digits, and see how far their probabilities can be trusted.

A *nested dichotomy* is a binary tree over the classes with a classifier at each internal node; the probability of a class is the
product along its path. Without further arguments the base learner, the tree and the calibration are chosen for the data.
"""

# %%
# Rows for training and testing. The classifier is one of scikit-learn in every respect: pipelines, grid searches, sparse
# matrices, data frames and string labels work as usual.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dichotomies import NestedDichotomyClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
tree = NestedDichotomyClassifier(random_state=0).fit(X_train, y_train)
print(tree.predict(X_test[:5]), tree.predict_proba(X_test[:5]).max(axis=1).round(2))

# %%
# The choices that were made, and the tree, in which similar digits are together:
print("learner:    ", tree.learner_)
print("calibration:", tree.calibration_)
print(tree.tree_.draw())

# %%
# Several trees make different errors. Pooled, they are better than one.
from dichotomies import NestedDichotomyEnsemble
from dichotomies.metrics import evaluate

trees = NestedDichotomyEnsemble(random_state=0).fit(X_train, y_train)
for name, model in {"one tree": tree, "ten trees": trees}.items():
    scores = evaluate(model, X_test, y_test).metrics
    print(f"{name:9}  NLL {scores['nll']:.3f}  accuracy {scores['accuracy']:.3f}  ECE {scores['ece']:.3f}")

# %%
# A reliability diagram asks: of the predictions made with a confidence of 80 %, are 80 % right? On the diagonal they are. Bands
# are 95 % intervals; hollow points have fewer than ten predictions.
from dichotomies.plots import ReliabilityDisplay

ReliabilityDisplay.from_estimator({"one tree": tree, "ten trees": trees}, X_test, y_test)
