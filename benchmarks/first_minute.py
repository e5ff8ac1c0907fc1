"""The first question of a new user: other classifiers and ours, as they come, on three datasets.

Needs LightGBM and HiClass: ``pip install lightgbm hiclass``.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.race import RESULTS, arguments, markdown_table, report
from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies.estimators.warm_up import LEARNERS, warm_up
from dichotomies.metrics import expected_calibration_error
from dichotomies.structures import STRUCTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dichotomies._common.typing import IntArray, Matrix

TEXT = """
# The first minute

Classifiers as they come, nobody tuned by hand: scikit-learn's multinomial logistic regression, the same with
its penalty searched over {Cs} by NLL in three folds, the same in `CalibratedClassifierCV`, LightGBM, HiClass
(logistic regression at the parents of a hierarchy of two levels), `NestedDichotomyClassifier()` and
`NestedDichotomyEnsemble()`. HiClass needs a hierarchy, and gets our 2-means tree, cut where it has about as
many groups as there are classes in a group.

digits (shipped with scikit-learn), letter (16 numbers, standardised) and clinc150 (what people ask an
assistant; log TF-IDF of words, sparse). For digits a quarter of the rows, drawn by class, is for testing,
and every figure is the mean of {n} such splits; letter and clinc150 come with test rows, so that theirs
rest on one split, where differences in the last digit mean nothing. ECE is that of the most probable class,
in 15 bins; a probability of 0 of the true class counts as {tiny:.0e} in NLL. Time is that of `fit`, all
choices and searches included, in processor seconds of one thread, relative to the logistic regression of
the first row; kernels were compiled before. LightGBM's defaults diverge on the many classes with few rows
of clinc150; other settings would do better there.
"""
CS = [0.01, 0.1, 1.0, 10.0, 100.0]
HEADER = ["data", "classifier", "accuracy", "NLL", "ECE", "time to fit, of the first row's"]
PEERS = ("lightgbm", "hiclass")
N_SPLITS = 6
MARKS = "<!-- first minute -->\n", "<!-- end -->"
README = RESULTS.parent.parent / "README.md"


class GroupedLogistic:
    """HiClass on two levels: groups of classes, and the classes in them."""

    def fit(self, X: Matrix, y: IntArray) -> GroupedLogistic:
        """Grow a 2-means tree, cut it, train logistic regression at each group."""
        from hiclass import LocalClassifierPerParentNode

        tree = STRUCTURES.create("2-means").grow(X, y, random_state=0)
        group = tree.cut(int(np.ceil(np.log2(tree.n_classes) / 2))).group_of_class
        labels = np.column_stack((np.char.add("group ", group[y].astype(str)), y.astype(str)))
        self.model = LocalClassifierPerParentNode(LogisticRegression(max_iter=1000)).fit(X, labels)
        return self

    def predict_proba(self, X: Matrix) -> Any:
        """Probabilities of the classes, in the order of their codes."""
        proba = self.model.predict_proba(X)
        order = np.argsort(np.asarray(self.model.classes_[-1], dtype=int))
        return proba[:, order]


def classifiers() -> dict[str, Any]:
    """What is compared, the flat model first."""
    from lightgbm import LGBMClassifier

    flat = LogisticRegression(max_iter=1000)
    return {
        "logistic regression": flat,
        "logistic regression, penalty searched": GridSearchCV(flat, {"C": CS}, cv=3, scoring="neg_log_loss"),
        "`CalibratedClassifierCV(LogisticRegression())`": CalibratedClassifierCV(flat),
        "LightGBM": LGBMClassifier(n_jobs=1, verbose=-1),
        "HiClass, logistic regression": GroupedLogistic(),
        "**our tree**": NestedDichotomyClassifier(random_state=0),
        "**our ensemble**": NestedDichotomyEnsemble(random_state=0),
    }


def datasets() -> Iterator[list[problems.Problem]]:
    """Three datasets, features prepared, each with one split or several."""
    X, y = load_digits(return_X_y=True)
    splits = [train_test_split(X, y, stratify=y, random_state=seed) for seed in range(N_SPLITS)]
    yield [problems.Problem("digits, 10 classes", X, y, Z, z) for X, Z, y, z in splits]
    letter = problems.letter()
    scaler = StandardScaler().fit(letter.X)
    X, X_test = scaler.transform(letter.X), scaler.transform(letter.X_test)
    yield [replace(letter, name="letter, 26 classes", X=X, X_test=X_test)]
    yield [replace(problems.own_split("clinc150"), name="clinc150, 150 classes")]


def _measured(problem: problems.Problem, model: Any) -> list[float]:
    """Accuracy, NLL and ECE on the test rows, and seconds to fit."""
    begun = time.process_time()
    model.fit(problem.X, problem.y)
    took = time.process_time() - begun
    proba, y = np.asarray(model.predict_proba(problem.X_test), dtype=np.float64), problem.y_test
    proba /= proba.sum(axis=1, keepdims=True)
    accuracy, nll = (
        float((proba.argmax(axis=1) == y).mean()),
        log_loss(y, proba, labels=range(proba.shape[1])),
    )
    return [accuracy, nll, expected_calibration_error(y, proba), took]


def _write_readme(rows: list[list[str]]) -> None:
    """Put the figures into the table of the README: a line for each classifier, a column for each dataset."""
    names = list(dict.fromkeys(name for name, *_ in rows))
    lines: dict[str, list[str]] = {}
    for _, classifier, accuracy, nll, ece, took in rows:
        lines.setdefault(classifier, [classifier]).append(f"{nll} / {accuracy} / {ece} / {took}x")
    table = markdown_table(["", *names], list(lines.values()))
    before, rest = README.read_text().split(MARKS[0])
    README.write_text(f"{before}{MARKS[0]}{table}\n{MARKS[1]}{rest.split(MARKS[1], 1)[1]}")


def main() -> None:
    options = arguments(__doc__, repeats=1)
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    list(warm_up(list(LEARNERS)))  # kernels are compiled beforehand
    rows, flat = [], 0.0
    with threadpool_limits(1):
        for splits in datasets():
            for i, (name, model) in enumerate(classifiers().items()):
                *scores, took = np.mean([_measured(split, model) for split in splits], axis=0).tolist()
                flat = took if i == 0 else flat
                figures = [f"{score:.3f}" for score in scores]
                rows.append([splits[0].name, name, *figures, f"{took / flat:.2g}"])
                print(*rows[-1], sep=" | ", flush=True)
    peers = ", ".join(f"{name} {version(name)}" for name in PEERS)
    text = TEXT.format(n=N_SPLITS, Cs=", ".join(map(str, CS)), tiny=np.finfo(float).eps)
    if options.save:
        _write_readme(rows)
    report("first_minute", f"{text}\nPeers: {peers}.", HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
