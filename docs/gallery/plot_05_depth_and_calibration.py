"""
Depth and calibration
=====================

Cut at a depth, a tree separates groups of classes. How well calibrated is it at each depth? This is the depth figure of the paper,
on a hundred handwritten characters that ship with the repository.
"""

# %%
# The rows are drawings of 100 characters of omniglot by 20 people: 15 of them for training, 5 for testing. (Run this example in a
# checkout of the repository, which has the data; any other matrix and labels do.)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dichotomies import NestedDichotomyClassifier
from experiments.datasets import load

data = load("omniglot_100", download=False)
X_train, y_train = data.split("train")
X_test, y_test = data.split("test")

# %%
# A random tree as in the paper, with logistic regression at the nodes and vector scaling outside. ``depth_cuts`` sums the
# probabilities of the classes in each group.
from dichotomies.diagnostics import depth_cuts

clf = NestedDichotomyClassifier(
    LogisticRegression(C=0.1, max_iter=1000),
    structure="random",
    internal_calibration=None,
    external_calibration="vector",
    random_state=0,
)
model = make_pipeline(StandardScaler(), clf).fit(X_train, y_train)
cuts = depth_cuts(model, X_test, y_test, depths=[1, 2, 4, 6, 9, 12])
for depth, groups, before, after in zip(
    cuts.depths, cuts.n_groups, cuts.before.ece_top_label, cuts.after.ece_top_label
):
    print(f"depth {depth:2}: {groups:3} groups, ECE {before:.3f} before and {after:.3f} after calibration")

# %%
# Errors of single decisions accumulate on the way down: uncalibrated, the tree is right ever more often than it says. Calibration of
# the classes mends that.
from dichotomies.plots import DepthReliabilityDisplay

DepthReliabilityDisplay(cuts).plot()
