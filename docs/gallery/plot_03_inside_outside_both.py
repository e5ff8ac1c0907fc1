"""
Calibrate inside, outside, both
===============================

Small errors at the nodes multiply along a path. They can be corrected at every node (*internal* calibration), in the probabilities of
the classes (*external*), or both; this is the question of the paper that the library implements.
"""

# %%
# Naive Bayes is badly calibrated: it multiplies the evidence of features that say the same thing. The tree is random, as in the
# paper; only the calibration differs.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
schemes = {
    "uncalibrated": (None, None),
    "inside: every node": ("isotonic", None),
    "outside: the classes": (None, "vector"),
    "both": ("isotonic", "vector"),
}
models = {}
for name, (internal, external) in schemes.items():
    clf = NestedDichotomyClassifier(
        GaussianNB(var_smoothing=1e-3),
        structure="random",
        internal_calibration=internal,
        external_calibration=external,
        random_state=0,
    )
    models[name] = clf.fit(X_train, y_train)

# %%
# With the default, ``"auto"``, the pair with the lowest NLL on rows that no fitted part has seen is chosen:
chosen = NestedDichotomyClassifier(GaussianNB(var_smoothing=1e-3), structure="random", random_state=0)
print(chosen.fit(X_train, y_train).calibration_)

# %%
# Reliability diagrams beside each other: the share of right answers against the confidence. Below the diagonal a model is too
# sure of itself. NLL is what a proper score says about all probabilities together.
import matplotlib.pyplot as plt

from dichotomies.metrics import evaluate
from dichotomies.plots import ReliabilityDisplay

figure, axes = plt.subplots(2, 2, figsize=(9, 9.5), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items()):
    nll = evaluate(model, X_test, y_test).metrics["nll"]
    ReliabilityDisplay.from_estimator({f"{name}, NLL {nll:.2f}": model}, X_test, y_test, ax=ax)
