"""
Saving, loading, serving
========================

A fitted model is one file without pickle: loading runs no code from it. A server loads it once, maps it into memory, and answers single
rows by search rather than by scoring every class.
"""

# %%
# Four thousand classes, generated, with naive Bayes and Platt scaling at the nodes, which keeps answers searchable.
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier, load

rng = np.random.default_rng(0)
y = np.arange(20_000) % 4000
X = 4 * rng.normal(size=(4000, 30))[y] + rng.normal(size=(20_000, 30))
clf = NestedDichotomyClassifier(
    GaussianNB(), internal_calibration="platt", external_calibration=None, random_state=0
)
clf.fit(X[:15_000], y[:15_000])

# %%
# Save, load, compare. With ``mmap_mode="r"`` processes that serve the same model share its memory.
path = Path(tempfile.mkdtemp()) / "four-thousand.model"
clf.save(path)
served = load(path, mmap_mode="r")
print(
    f"{path.stat().st_size / 1e6:.1f} MB; the same to the bit:",
    (served.predict_proba(X[-100:]) == clf.predict_proba(X[-100:])).all(),
)

# %%
# A request asks for the five most probable classes of one row. The search looks only into nodes that can hold one of them.
answer = served.predict_top_k(X[-1:], k=5, search="exact")
labels, proba = answer
print(labels[0], proba[0].round(3), "after", int(answer.n_visits[0]), "of", served.tree_.n_nodes, "nodes")

# %%
# Time per request, in processor time of this machine:


def milliseconds(ask, n=200):
    ask(X[-1:])
    begun = time.process_time()
    for row in X[-n:]:
        ask(row[None])
    return 1000 * (time.process_time() - begun) / n


times = {
    "predict_proba: every class": milliseconds(served.predict_proba),
    "predict_top_k(k=5): search": milliseconds(lambda row: served.predict_top_k(row, k=5, search="exact")),
    "predict: search": milliseconds(served.predict),
}
for name, took in times.items():
    print(f"{name:28} {took:.3f} ms")

# %%
# Kernels are compiled at their first call and kept on disk; ``dichotomies warm-up`` does that when an image is built
# (:doc:`/deployment`).
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7.5, 2.4), layout="constrained")
ax.barh(list(times)[::-1], list(times.values())[::-1], color=["#0072b2", "#56b4e9", "#999999"])
ax.set(xlabel="milliseconds of processor time per row, 4,000 classes")
ax.spines[["top", "right"]].set_visible(False)
