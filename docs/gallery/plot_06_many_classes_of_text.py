"""
Many classes of text
====================

A hundred and fifty intents of what people ask an assistant, as sparse TF-IDF. A tree trains in a fraction of the time of flat
logistic regression, and its probabilities say when to hand a question to a person.
"""

# %%
# The corpus (CLINC150) ships with the repository as counts of words; every class has 100 rows for training.
from sklearn.feature_extraction.text import TfidfTransformer

from experiments.datasets import load

data = load("clinc150", download=False)
tfidf = TfidfTransformer(sublinear_tf=True)
X_train, y_train = data.split("train")
X_test, y_test = data.split("test")
X_train, X_test = tfidf.fit_transform(X_train), tfidf.transform(X_test)
print(X_train.shape, len(set(y_train)), "classes:", ", ".join(sorted(set(y_train))[:6]), "...")

# %%
# A tree, ten trees, and flat multinomial logistic regression with and without calibration by `CalibratedClassifier`. Times are
# processor seconds, kernels compiled before.
import time

from sklearn.linear_model import LogisticRegression

from dichotomies import CalibratedClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies.metrics import evaluate

base = LogisticRegression(C=10)
NestedDichotomyClassifier(base).fit(X_train[::2], y_train[::2])  # compiles, for once
models = {
    "flat": LogisticRegression(C=10),
    "one tree": NestedDichotomyClassifier(base, random_state=0),
    "ten trees": NestedDichotomyEnsemble(base, random_state=0),
}
for name, model in models.items():
    begun = time.process_time()
    model.fit(X_train, y_train)
    took = time.process_time() - begun
    scores = evaluate(model, X_test, y_test).metrics
    print(
        f"{name:10} {took:5.1f} s  NLL {scores['nll']:.3f}  accuracy {scores['accuracy']:.3f}  ECE {scores['ece']:.3f}"
    )

# %%
# The flat model is far too unsure with this penalty; calibrated on rows held out, it is a good one, too.
X_held, y_held = data.split("val")
flat = CalibratedClassifier(models["flat"], "vector").fit(tfidf.transform(X_held), y_held)
print(f"flat, calibrated: NLL {evaluate(flat, X_test, y_test).metrics['nll']:.3f}")

# %%
# Accept answers from some confidence on, and leave the others to a person: how many are answered, and how many of those wrongly?
import matplotlib.pyplot as plt
import numpy as np

figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for (name, model), colour in zip(
    {**models, "flat, calibrated": flat}.items(), ("#999999", "#0072b2", "#d55e00", "#009e73")
):
    proba = model.predict_proba(X_test)
    confidence = proba.max(axis=1)
    is_wrong = model.classes_[proba.argmax(axis=1)] != y_test
    order = np.argsort(-confidence)
    answered = np.arange(1, len(order) + 1) / len(order)
    ax.plot(answered, np.cumsum(is_wrong[order]) / np.arange(1, len(order) + 1), label=name, color=colour)
ax.set(
    xlabel="share of questions answered, the most confident first", ylabel="share of answers that are wrong"
)
ax.set(xlim=(0.4, 1), ylim=(0, 0.12))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
