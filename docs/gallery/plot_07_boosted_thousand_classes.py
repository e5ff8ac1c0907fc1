"""
Boosted trees at a thousand classes
===================================

Flat gradient boosting grows one tree per class and round: with a thousand classes, a hundred rounds are a hundred thousand trees. A
nested dichotomy boosts each node only on the rows of its own classes. Here it is beside LightGBM.
"""

# %%
# Generated data, because sizes are the question: classes of equal size, ten numbers, normal around a centre.
import time

import numpy as np
from lightgbm import LGBMClassifier

from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier
from dichotomies.metrics import accuracy, negative_log_likelihood


def sample(n_classes, n_rows, n_features=10):
    rng = np.random.default_rng(0)
    y = np.arange(n_classes * n_rows) % n_classes
    centres = 2.2 * rng.normal(size=(n_classes, n_features))
    X = centres[y] + rng.normal(size=(len(y), n_features))
    half = len(y) // 2
    return X[:half], y[:half], X[half:], y[half:]


def measured(model, data):
    X_train, y_train, X_test, y_test = data
    begun = time.process_time()
    model.fit(X_train, y_train)
    took = time.process_time() - begun
    proba = model.predict_proba(X_test)
    return took, negative_log_likelihood(y_test, proba, clip=1e-15), accuracy(y_test, proba)


# %%
# Both use one thread; ours has the defaults of `HistGradientBoostClassifier` and nothing calibrated, LightGBM has five rounds in place
# of a hundred, so that this page can be built in half a minute: its default takes about twenty times as long.
ours = NestedDichotomyClassifier(
    HistGradientBoostClassifier(), internal_calibration=None, external_calibration=None, random_state=0
)
theirs = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1)
ours.fit(*sample(10, 600)[:2])  # compiles
sizes = [10, 30, 100, 300, 1000]
results = {"nested dichotomy": [], "LightGBM, 5 rounds": []}
for n_classes in sizes:
    data = sample(n_classes, 20)
    for name, model in zip(results, (ours, theirs)):
        results[name].append(measured(model, data))
        took, nll, share = results[name][-1]
        print(f"{n_classes:5} classes  {name:20} {took:6.2f} s  NLL {nll:6.3f}  accuracy {share:.3f}")

# %%
# Time against the number of classes, with ten rows of each for training. Flat boosting needs rows x classes; the tree needs
# rows x depth. See :doc:`/benchmarks/boosting_race` for real data, where a flat model is also the better one at times.
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for (name, lines), colour in zip(results.items(), ("#0072b2", "#d55e00")):
    took, nll, _ = np.array(lines).T
    left.loglog(sizes, took, "o-", label=name, color=colour)
    right.semilogx(sizes, nll, "o-", label=name, color=colour)
left.set(xlabel="classes", ylabel="processor seconds to fit")
right.set(xlabel="classes", ylabel="NLL on new rows")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
