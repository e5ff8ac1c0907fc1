"""Live reports of the site: 10, 150 and 1,500 classes.

Run with ``python -m docs.site.reports FOLDER``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from dichotomies import NestedDichotomyClassifier
from dichotomies.report import make
from experiments.datasets import load

if TYPE_CHECKING:
    from dichotomies.report import Report


def digits() -> Report:
    """Ten classes: images of handwritten digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    return NestedDichotomyClassifier(random_state=0).fit(X_train, y_train).report(X_test, y_test)


def intents() -> Report:
    """A hundred and fifty classes: questions to an assistant; a row is called by its words."""
    data = load("clinc150", download=False)
    clf = NestedDichotomyClassifier(LogisticRegression(C=10), random_state=0)
    model = make_pipeline(TfidfTransformer(sublinear_tf=True), clf).fit(*data.split("train"))
    X, y = data.split("test")
    words = data.extra["vocab"]
    examples = [" ".join(words[X.indices[a:b]]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    return make(model, X, y, examples=examples)


def generated() -> Report:
    """Fifteen hundred classes in groups of ten, ten rows of each for training and two for testing."""
    rng = np.random.default_rng(0)
    n_groups, n_per_group, n_features = 150, 10, 24
    groups = 2.0 * rng.normal(size=(n_groups, n_features))
    centres = np.repeat(groups, n_per_group, axis=0) + 1.2 * rng.normal(
        size=(n_groups * n_per_group, n_features)
    )
    codes = np.arange(12 * len(centres)) % len(centres)
    X = centres[codes] + rng.normal(size=(len(codes), n_features))
    y = np.array([f"group {code // n_per_group:03}/class {code % n_per_group}" for code in codes])
    train = np.arange(len(y)) < 10 * len(centres)
    clf = NestedDichotomyClassifier(
        GaussianNB(), internal_calibration="platt", external_calibration="vector", random_state=0
    )
    return clf.fit(X[train], y[train]).report(X[~train], y[~train])


REPORTS = {"digits": digits, "intents": intents, "generated": generated}


def main() -> None:
    """Write all reports into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, report in REPORTS.items():
        made = report()
        made.save(folder / f"{name}.html")
        print(f"{name}: {made}", flush=True)


if __name__ == "__main__":
    main()
