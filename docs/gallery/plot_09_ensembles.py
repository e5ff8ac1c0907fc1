"""
Ensembles: how many trees?
==========================

In one tree, some node must separate a class from an unfavourable mixture of others; another tree has another mixture. Pooled, they err
less. Here is what each further tree brings, and what it costs.
"""

# %%
# The hundred characters of omniglot that ship with the repository, 15 drawings of each for training.
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from experiments.datasets import load

data = load("omniglot_100", download=False)
X_train, y_train = data.split("train")
X_test, y_test = data.split("test")
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# Three structures, one to twenty trees. Nodes that split the same classes the same way are trained once.
from dichotomies import NestedDichotomyEnsemble
from dichotomies.metrics import evaluate

base = LogisticRegression(C=0.01)
numbers = [1, 2, 5, 10, 20]
losses = {}
for structure in ("random", "random-pair", "2-means"):
    losses[structure] = []
    for n_trees in numbers:
        pool = NestedDichotomyEnsemble(base, structure, n_estimators=n_trees, random_state=0).fit(
            X_train, y_train
        )
        losses[structure].append(evaluate(pool, X_test, y_test).metrics["nll"])
    print(
        f"{structure:12}",
        [round(loss, 2) for loss in losses[structure]],
        pool.n_different_nodes_,
        "different nodes",
    )

# %%
# Most of the gain is had with ten trees, the default. Random trees start worst and gain most; trees that are good by themselves
# and different from each other, such as those of random pairs (the default), end lowest or near it.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for (structure, loss), colour in zip(losses.items(), ("#999999", "#0072b2", "#d55e00")):
    ax.plot(numbers, loss, "o-", color=colour, label=structure)
ax.set(xscale="log", xticks=numbers, xlabel="trees", ylabel="NLL on new drawers' rows", ylim=(0, None))
ax.set_xticklabels(numbers)
ax.minorticks_off()
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
