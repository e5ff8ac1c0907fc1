"""Very many corrupted model files and random calls: none may crash, hang, run code or answer wrongly.

``python -m benchmarks.robustness --files 10000 --calls 100000`` runs them in processes of their own, so
that a crash or a call without end is seen and counted.
"""

from __future__ import annotations

import argparse
import copy
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race import report
from dichotomies import load
from dichotomies.persistence import ModelFileError, container, save
from tests.fuzzing import Caller
from tests.persistence.models import ESTIMATORS, model, rows_for
from tests.persistence.test_hostile import answer_or_refusal, mutate

HEADER = ["what", "number", "answered", "refused in a sentence", "wrong, crashed or without end"]
TEXT = """
# Robustness

Corrupted and adversarial model files: a valid file of a random learner with one to three random changes (of
a value or a tensor: other lengths, types, indices out of range), its checksum recomputed. Each is refused,
or is a model that gives probabilities or refuses in a sentence. Random calls of the public interface:
absurd features, labels, weights and parameters; each raises a `ValueError` or `TypeError` with a sentence,
or gives finite rows that sum to 1.
"""
_BATCH = 250
_SECONDS = 600


def files(seed: int) -> tuple[int, int, list[str]]:
    """Load a batch of corrupted files: how many answered, how many were refused, and what went wrong."""
    rnd, answered, refused, wrong = random.Random(seed), 0, 0, list[str]()
    name = rnd.choice([each for each in ESTIMATORS if not each.startswith("clones")])
    X, _ = rows_for(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.model"
        internal = rnd.choice([None, "platt", "isotonic", "beta"])
        save(model(name, internal_calibration=internal, average_folds=rnd.random() < 0.5), path)
        document, tensors = container.read(path)
        for _ in range(_BATCH):
            changed = copy.deepcopy(document), dict(tensors)
            with np.errstate(all="ignore"):
                for _ in range(rnd.randint(1, 3)):
                    mutate(*changed, rnd)
            try:
                container.write(path, *changed)
                clf = load(path)
                with np.errstate(all="ignore"):
                    answer: Any = answer_or_refusal(clf, X[:, : clf.n_features_in_])
                answered, refused = answered + (answer.ndim == 2), refused + (answer.ndim != 2)
            except ModelFileError:
                refused += 1
            except Exception as error:
                wrong.append(f"{name}: {error!r}")
    return answered, refused, wrong


def calls(seed: int) -> tuple[int, int, list[str]]:
    """Make a batch of random calls."""
    found = Caller(seed).make(_BATCH)
    return found.answers, found.refusals, found.wrong


def _in_processes(work: Any, n_batches: int, jobs: int, seed: int) -> list[object]:
    answered, refused, wrong = 0, 0, list[str]()
    with ProcessPoolExecutor(jobs, max_tasks_per_child=20, mp_context=_spawn()) as pool:
        for begun in [pool.submit(work, seed + i) for i in range(n_batches)]:
            try:
                more = begun.result(_SECONDS)
                answered, refused, wrong = answered + more[0], refused + more[1], wrong + more[2]
            except (BrokenProcessPool, TimeoutError) as error:
                wrong.append(repr(error))
    for each in wrong[:20]:
        print(each)
    return [f"{answered + refused + len(wrong):,}", f"{answered:,}", f"{refused:,}", len(wrong)]


def _spawn() -> Any:
    from multiprocessing import get_context

    return get_context("spawn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000, help="corrupted model files")
    parser.add_argument("--calls", type=int, default=100_000, help="random calls")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="others are other files and calls")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    rows = []
    for title, work, number in (("model files", files, options.files), ("calls", calls, options.calls)):
        rows.append([title, *_in_processes(work, -(-number // _BATCH), options.jobs, options.seed)])
    report("robustness", TEXT, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
