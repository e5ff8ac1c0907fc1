"""Prediction sets of MAPIE for given probabilities; run by `benchmarks.prediction_sets --peers PYTHON`.

It imports nothing of this repository. `python mapie_sets.py FILE` reads probabilities and labels of
calibration and test rows from an .npz file and prints coverage and mean size by score and coverage as JSON.
"""
# ruff: noqa: D102, ARG002 - a scikit-learn classifier

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its probabilities."""

    def fit(self, X: Any, y: Any) -> Given:
        self.classes_ = np.arange(X.shape[1])
        self.is_fitted_ = True
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return X.argmax(axis=1)


def main() -> None:
    data = np.load(sys.argv[1])
    levels = [0.8, 0.9, 0.95]
    result = {}
    for score in ("lac", "aps"):
        model = SplitConformalClassifier(
            Given().fit(data["calibration"], data["y_calibration"]),
            confidence_level=levels,
            conformity_score=score,
            prefit=True,
            random_state=0,
        )
        model.conformalize(data["calibration"], data["y_calibration"])
        sets = model.predict_set(data["test"])[1]
        held = sets[np.arange(len(sets)), data["y_test"]]
        result[score] = [held.mean(axis=0).tolist(), sets.sum(axis=1).mean(axis=0).tolist()]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
