"""Exported models in onnxruntime beside ours: the largest difference, and the speed of both."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.race import arguments, report, seconds
from dichotomies import HistAdaBoostClassifier, HistGradientBoostClassifier, NestedDichotomyClassifier
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.export import to_onnx

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = """
# ONNX beside ours

letter (26 classes, 16 features), trained on 4,000 rows: every learner without calibration, and naive
Bayes with every calibrator that exports, at the nodes and outside. The largest difference of any
log-probability and probability of 4,000 test rows between onnxruntime {onnx} and ours, and how many times
as long onnxruntime takes, for all those rows at once and for one row; below 1 it is the faster. Processor
time, one thread on either side.
"""
HEADER = [
    "model",
    "log-probability, largest difference",
    "probability",
    "time of onnxruntime: 4,000 rows",
    "one row",
]
LEARNERS = [
    LogisticRegression(),
    GaussianNB(),
    MultinomialNB(),
    ComplementNB(),
    BernoulliNB(binarize=0.5),
    HistAdaBoostClassifier(50),
    HistGradientBoostClassifier(50),
]


def models() -> Iterator[tuple[str, Any]]:
    """Unfitted classifiers that can be exported, by their names in the table."""
    make = partial(NestedDichotomyClassifier, structure="2-means", random_state=0)
    for base in LEARNERS:
        yield type(base).__name__, make(base, internal_calibration=None, external_calibration=None)
    for name in BINARY.names():
        if name != "auto":
            yield f"nodes: {name}", make(GaussianNB(), internal_calibration=name, external_calibration=None)
    for name in MULTICLASS.names():
        if name != "auto":
            yield f"outside: {name}", make(GaussianNB(), internal_calibration=None, external_calibration=name)


def _session(model: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def _row(name: str, clf: Any, X: Any, repeats: int) -> list[str]:
    try:
        session = _session(to_onnx(clf))
    except (TypeError, ValueError, NotImplementedError) as refusal:
        return [name, f"not exported: {refusal}", "", "", ""]
    log_proba, proba = session.run(["log_probabilities", "probabilities"], {"X": X})
    differences = [
        np.abs(log_proba - clf.predict_log_proba(X)).max(),
        np.abs(proba - clf.predict_proba(X)).max(),
    ]
    times = []
    for rows, turns in ((X, repeats), (X[:1], 20 * repeats)):
        theirs = partial(session.run, ["probabilities"], {"X": rows})
        ours = partial(clf.predict_proba, rows)
        pairs = [seconds(theirs, process_time) / seconds(ours, process_time) for _ in range(turns)]
        times.append(median(pairs))
    return [name, *(f"{each:.0e}" for each in differences), *(f"{each:.2g}" for each in times)]


def main() -> None:
    options = arguments(__doc__, repeats=5)
    letter = problems.letter()
    rows = []
    with threadpool_limits(1):
        for name, clf in models():
            clf.fit(letter.X[:4_000], letter.y[:4_000]).predict_proba(letter.X_test)
            rows.append(
                _row(name, clf, np.ascontiguousarray(letter.X_test, dtype=np.float64), options.repeats)
            )
            print(*rows[-1], sep=" | ", flush=True)
    report("onnx_speed", TEXT.format(onnx=version("onnxruntime")), HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
