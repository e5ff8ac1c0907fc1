"""Writes small models of this version, which later versions must read: ``python -m tests.persistence.keep``.

One of each learner, calibrator, ensemble and wrapper goes to ``tests/persistence/version_X.Y.Z/``, with the
probabilities that it gives. Estimators of other libraries are left out: files of theirs depend on the version
of that library. The files of a version that was released are never written again.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB

from dichotomies import CalibratedClassifier, NestedDichotomyEnsemble, __version__
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from tests.persistence.models import ESTIMATORS, digits, model, rows_for

FOLDER = Path(__file__).parent / f"version_{__version__}"


def models():
    """Fitted models by name, each with the rows that it is asked for."""
    X, y = digits()
    for name in ESTIMATORS:
        if not name.startswith("clones"):
            yield f"learner {name}", model(name, external_calibration=None), rows_for(name)[0]
    for name in BINARY.names():
        params = {"internal_calibration": name, "external_calibration": None}
        yield f"inside {name}", model("naive-bayes gaussian", **params), X
    for name in MULTICLASS.names():
        yield f"outside {name}", model("naive-bayes gaussian", external_calibration=name), X
    averaged = model("logistic", internal_calibration="platt", average_folds=True)
    yield "averaged folds", averaged, X
    for pooling in ("geometric", "arithmetic"):
        trees = NestedDichotomyEnsemble(GaussianNB(), n_estimators=3, pooling=pooling, random_state=0)
        yield f"ensemble {pooling}", trees.fit(X, y), X
    plain = model("naive-bayes gaussian", external_calibration=None)
    yield "calibrated classifier", CalibratedClassifier(plain, "temperature").fit(X, y), X
    yield "prediction sets", model("logistic", prediction_sets=2, calibration_size="cross-fit"), X


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    answers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few rows are easily separated
        for name, fitted, X in models():
            fitted.save(FOLDER / f"{name}.model")
            answers[name] = fitted.predict_proba(X[::10])
    np.savez_compressed(FOLDER / "predictions.npz", **answers)
    sys.stdout.write(f"{len(answers)} models in {FOLDER}\n")


if __name__ == "__main__":
    main()
