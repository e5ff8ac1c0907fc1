"""Very many corrupted model files and random calls: none may crash, hang, run code or answer wrongly.

``python -m benchmarks.robustness --files 10000 --calls 100000`` runs them in processes of their own, so
that a crash or a call without end is seen and counted.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race import report
from dichotomies import load
from dichotomies.persistence import ModelFileError, save, save_load
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
_BATCH, _BATCHES = 250, 4  # of files or calls; of batches in a process
_SECONDS = 3600


def files(seed: int) -> tuple[int, int, list[str]]:
    """Load a batch of corrupted files: how many answered, how many were refused, and what went wrong."""
    rnd, answered, refused, wrong = random.Random(seed), 0, 0, list[str]()
    name = rnd.choice([each for each in ESTIMATORS if not each.startswith("clones")])
    X, _ = rows_for(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.model"
        internal = rnd.choice([None, "platt", "isotonic", "beta"])
        save(model(name, internal_calibration=internal, average_folds=rnd.random() < 0.5), path)
        document, tensors = save_load.read(path)
        for _ in range(_BATCH):
            changed = copy.deepcopy(document), dict(tensors)
            with np.errstate(all="ignore"):
                for _ in range(rnd.randint(1, 3)):
                    mutate(*changed, rnd)
            try:
                save_load.write(path, *changed)
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


def _in_process(kind: str, seed: int) -> tuple[int, int, list[str]]:
    """Make some batches in a process of their own, so that a crash or a call without end is seen."""
    command = [sys.executable, "-m", "benchmarks.robustness", "--part", kind, "--seed", str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return 0, 0, [f"{kind}, seed {seed}: without end"]
    if done.returncode:
        return 0, 0, [f"{kind}, seed {seed}: exit code {done.returncode}, {done.stderr[-300:]}"]
    answered, refused, wrong = json.loads(done.stdout.splitlines()[-1])
    return answered, refused, wrong


def _part(kind: str, seed: int) -> tuple[int, int, list[str]]:
    parts = [_WORK[kind](seed + i) for i in range(_BATCHES)]
    return _sum(parts)


def _sum(parts: list[tuple[int, int, list[str]]]) -> tuple[int, int, list[str]]:
    answered, refused, wrong = zip(*parts, strict=True)
    return sum(answered), sum(refused), list(chain.from_iterable(wrong))


def _remembered(store: Path | None, kind: str, seed: int) -> tuple[int, int, list[str]]:
    """Take the batches from the store, or make them and add them to it."""
    if store is None:
        return _in_process(kind, seed)
    lines = map(json.loads, store.read_text().splitlines()) if store.exists() else []
    known = next((part for *key, part in lines if key == [kind, seed]), None)
    if known is None:
        known = _in_process(kind, seed)
        with store.open("a") as file:
            file.write(json.dumps([kind, seed, known]) + "\n")
    return known[0], known[1], known[2]


def _row(kind: str, number: int, options: argparse.Namespace) -> list[object]:
    starts = range(options.seed, options.seed + -(-number // _BATCH), _BATCHES)
    with ThreadPoolExecutor(options.jobs) as threads:
        parts = list(threads.map(lambda start: _remembered(options.store, kind, start), starts))
    answered, refused, wrong = _sum(parts)
    print(*wrong[:20], sep="\n")
    return [kind, f"{answered + refused + len(wrong):,}", f"{answered:,}", f"{refused:,}", len(wrong)]


_WORK = {"model files": files, "calls": calls}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000, help="corrupted model files")
    parser.add_argument("--calls", type=int, default=100_000, help="random calls")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="others are other files and calls")
    parser.add_argument("--store", type=Path, help="file of results, with which an interrupted run goes on")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    parser.add_argument("--part", choices=_WORK, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(_part(options.part, options.seed)))
        return
    numbers = {"model files": options.files, "calls": options.calls}
    rows = [_row(kind, number, options) for kind, number in numbers.items() if number]
    report("robustness", TEXT, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
