"""The paper's own datasets: its naive Bayes and logistic regression rows, and its ordering of the schemes.

Multinomial naive Bayes and LIBLINEAR, as the numbers imply; NLL clipped at 1e-15, as scikit-learn did then.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB

from dichotomies import NestedDichotomyClassifier

SCHEMES = {
    "none": (None, None),
    "external_vs": (None, "vector"),
    "internal_ps": ("platt", None),
    "both_ps": ("platt", "vector"),
    "internal_ir": ("isotonic", None),
    "both_ir": ("isotonic", "vector"),
}

#: (learner, dataset): scheme -> (mean, standard deviation) of the NLL in the paper's tables.
PAPER = {
    ("naive_bayes", "optdigits"): {
        "none": (4.252, 0.92),
        "external_vs": (0.841, 0.13),
        "internal_ps": (0.852, 0.11),
        "both_ps": (0.807, 0.09),
        "internal_ir": (0.714, 0.12),
        "both_ir": (0.642, 0.09),
    },
    ("naive_bayes", "letter"): {
        "none": (2.338, 0.08),
        "external_vs": (2.155, 0.08),
        "internal_ps": (2.165, 0.06),
        "both_ps": (2.068, 0.07),
        "internal_ir": (2.055, 0.07),
        "both_ir": (1.953, 0.06),
    },
    ("logistic_regression", "optdigits"): {"none": (0.302, 0.07), "external_vs": (0.301, 0.08)},
    ("logistic_regression", "letter"): {"none": (1.502, 0.06), "external_vs": (1.435, 0.08)},
}

LEARNERS = {
    "naive_bayes": MultinomialNB(),
    "logistic_regression": LogisticRegression(solver="liblinear"),
}


def mean_nll(data, learner, scheme, n_folds=10):
    """Mean over the folds of a 10-fold cross-validation, a new random tree in each."""
    internal, external = SCHEMES[scheme]
    X, losses = data.X.astype(float), []
    splits = StratifiedKFold(10, shuffle=True, random_state=0).split(X, data.y)
    for seed, (train, test) in zip(range(n_folds), splits, strict=False):
        clf = NestedDichotomyClassifier(
            LEARNERS[learner],
            "random",
            internal_calibration=internal,
            external_calibration=external,
            random_state=seed,
        ).fit(X[train], data.y[train])
        losses.append(clipped_nll(clf, X[test], data.y[test]))
    return float(np.mean(losses))


def clipped_nll(clf, X, y):
    truth = clf.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(clf.classes_, y)]
    return -np.maximum(truth, np.log(1e-15)).mean()


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "dataset"), PAPER)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_of_the_papers_tables(real_data, learner, dataset):
    data = real_data(dataset)
    paper = PAPER[learner, dataset]
    ours = {scheme: mean_nll(data, learner, scheme) for scheme in paper}
    for scheme, (mean, deviation) in paper.items():
        assert abs(ours[scheme] - mean) < 2 * deviation, (scheme, ours[scheme], mean)
    for first, second in itertools.permutations(paper, 2):  # the same order, where the paper's is clear
        if paper[first][0] + 2 * max(paper[first][1], paper[second][1]) < paper[second][0]:
            assert ours[first] < ours[second], (first, second)
    for inside in {scheme.split("_")[1] for scheme in paper if scheme.startswith("internal")}:
        assert ours[f"both_{inside}"] < ours[f"internal_{inside}"] < ours["none"]
    assert ours["external_vs"] < ours["none"]


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_on_micromass_the_external_step_does_no_harm(real_data, learner):
    """571 rows, 20 classes: some 50 rows to calibrate on, where plain vector scaling goes wild."""
    data = real_data("micromass")
    X, y = data.X.astype(float), data.y
    splits = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))[:5]
    for internal in (None, "platt", "isotonic"):
        before, after = [], []
        for seed, (train, test) in enumerate(splits):
            clf = NestedDichotomyClassifier(
                LEARNERS[learner], internal_calibration=internal, random_state=seed
            ).fit(X[train], y[train])
            after.append(clipped_nll(clf, X[test], y[test]))
            clf.model_ = replace(clf.model_, external=None)
            before.append(clipped_nll(clf, X[test], y[test]))
        assert np.mean(after) < 1.1 * np.mean(before)
