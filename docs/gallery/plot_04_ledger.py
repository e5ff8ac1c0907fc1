"""
Where is the loss?
==================

The negative log-likelihood of a tree is a sum over its nodes. The *ledger* writes the account: which decision loses how much, how much
of that recalibration could recover, and which pairs of classes it costs.
"""

# %%
# A tree over the digits with logistic regression at the nodes.
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dichotomies import NestedDichotomyClassifier
from dichotomies.diagnostics import confused_pairs, ledger

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
clf = NestedDichotomyClassifier(LogisticRegression(C=0.01, max_iter=1000), random_state=0).fit(
    X_train, y_train
)
book = ledger(clf, X_test, y_test)
print(f"NLL of the tree {book.total:.3f}, after external calibration {book.final_nll:.3f}")

# %%
# The nodes with most to gain, first. ``nll`` is the contribution of a node to the total in nats, ``share`` its share of it,
# ``recoverable`` what recalibrating that node alone on new rows would gain; the rest needs a better learner, other features or
# another split there.
print(book.next_nat(4).to_pandas()[["node", "depth", "nll", "share", "recoverable"]].round(3))

# %%
# Pairs of classes that are confused, with the node at which they part:
pairs = confused_pairs(clf, X_test, y_test, top=4)
for first, second, errors, node in zip(pairs.first, pairs.second, pairs.errors, pairs.node):
    print(f"{first} and {second}: {errors:.0f} errors, separated at node {node}")

# %%
# The ledger on the tree: nodes are as wide as the rows that reach them. Dark nodes decide well; a bright one is hardly better than a
# coin. Below, the loss by depth.
from dichotomies.plots import LedgerDisplay

LedgerDisplay(book).plot()
