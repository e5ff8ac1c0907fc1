"""Trees against the flat model: NLL, accuracy and time beside multinomial logistic regression."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.race import arguments, report
from dichotomies import (
    CalibratedClassifier,
    NestedDichotomyClassifier,
    NestedDichotomyEnsemble,
)
from dichotomies.rows.folds import hold_out

if TYPE_CHECKING:
    from dichotomies._common.typing import IntArray, Matrix

TEXT = """
# Beside the flat model

Multinomial logistic regression (scikit-learn's, one model over all classes) against nested dichotomies of
logistic regressions on the same features with the same penalty C, which was chosen for the flat model: letter
(standardised, C = 1), clinc150 (log TF-IDF, C = 10), omniglot (standardised, C = 0.1). The tree and the
ensemble are the library's defaults, calibrated by vector scaling on a tenth of the training rows;
"cross-fit" calibrates on out-of-fold probabilities instead and trains on all rows. The flat model is shown as
it is and with the same calibration on the same tenth. Time is that of fitting, choosing and growing the tree
included, in processor seconds of one thread, relative to the flat model as it is: 0.10 is a tenth of its
time. One seed.

The default tree is one of "2-means" on letter and clinc150 and, chosen out of fold on training rows, the deep
one of "single" on omniglot. It comes within a tenth of the flat model's NLL, or below it, in all three cases
and in less time. But its accuracy is lower in all three, and a flat model that is calibrated, too, has the
lower NLL: where one model must do and its training time does not matter, a flat one is better. Ten trees have
the lowest NLL in all three cases, also beside the calibrated flat model, in less time, at about its accuracy.
"""


def letter() -> tuple[problems.Problem, float]:
    """Letters, standardised."""
    return _standardised(problems.letter()), 1.0


def clinc150() -> tuple[problems.Problem, float]:
    """Intents, on the split they come with."""
    return problems.own_split("clinc150"), 10.0


def omniglot() -> tuple[problems.Problem, float]:
    """Handwritten characters, standardised."""
    return _standardised(problems.omniglot()), 0.1


def _standardised(problem: problems.Problem) -> problems.Problem:
    scaler = StandardScaler().fit(problem.X)
    return replace(problem, X=scaler.transform(problem.X), X_test=scaler.transform(problem.X_test))


class CalibratedFlat:
    """The flat model, its output calibrated on a tenth of the rows."""

    def __init__(self, model: LogisticRegression) -> None:
        self.model = model

    def fit(self, X: Matrix, y: IntArray) -> CalibratedFlat:
        """Train on nine tenths, calibrate on the last."""
        held = hold_out(y, 0.1, np.random.RandomState(0))
        self.calibrated = CalibratedClassifier(self.model.fit(X[~held], y[~held])).fit(X[held], y[held])
        return self

    def predict_log_proba(self, X: Matrix) -> Any:
        """Calibrated."""
        return self.calibrated.predict_log_proba(X)


def rivals(C: float) -> dict[str, Any]:
    """What is compared, the flat model first."""
    node = LogisticRegression(C=C, max_iter=1000)
    return {
        "flat": LogisticRegression(C=C, max_iter=1000),
        "flat, calibrated": CalibratedFlat(LogisticRegression(C=C, max_iter=1000)),
        "one random tree": NestedDichotomyClassifier(node, "random", random_state=0),
        "one tree": NestedDichotomyClassifier(node, random_state=0),
        "one tree, 2-means": NestedDichotomyClassifier(node, "2-means", random_state=0),
        "ten trees": NestedDichotomyEnsemble(node, random_state=0),
        "ten trees, not calibrated": NestedDichotomyEnsemble(
            node, internal_calibration=None, external_calibration=None, random_state=0
        ),
        "ten trees, cross-fit": NestedDichotomyEnsemble(node, calibration_size="cross-fit", random_state=0),
    }


def scores(problem: problems.Problem, model: Any) -> tuple[float, float, float]:
    """Seconds to fit, NLL and accuracy."""
    begun = time.process_time()
    model.fit(problem.X, problem.y)
    seconds = time.process_time() - begun
    log_proba = model.predict_log_proba(problem.X_test)
    nll = -log_proba[np.arange(len(problem.y_test)), problem.y_test].mean()
    return seconds, nll, float(np.mean(log_proba.argmax(axis=1) == problem.y_test))


def main() -> None:
    options = arguments(__doc__, repeats=1)
    rows: list[list[object]] = []
    for problem, C in (letter(), clinc150(), omniglot()):
        compared = rivals(C)
        with threadpool_limits(1):
            few = np.flatnonzero(problem.y < 10)  # compiles what is not compiled yet
            for name in ("one tree", "ten trees"):
                compared[name].fit(problem.X[few], problem.y[few]).predict(problem.X_test[:10])
            flat = 0.0
            for name, model in compared.items():
                seconds, nll, accuracy = scores(problem, model)
                flat = flat or seconds
                rows.append([problem.name, name, f"{nll:.3f}", f"{accuracy:.3f}", f"{seconds / flat:.2f}"])
                print(*rows[-1], sep=" | ", flush=True)
    header = ["data", "model", "NLL", "accuracy", "time to fit, of the flat model's"]
    report("flat", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
