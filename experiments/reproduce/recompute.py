"""A sample of stored trials run again: ``python -m experiments.reproduce.recompute``.

The same trial gives the same numbers, so that a difference is a change of the library, or of those it uses.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from experiments.reproduce.measure import measure
from experiments.reproduce.trial import PaperStore
from experiments.running.result import METRICS

STORE = Path(__file__).parents[2] / "docs" / "reproduction" / "results.sqlite"


def main() -> None:
    """Draw trials, run them, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=24, help="how many to run")
    parser.add_argument("--seconds", type=float, default=2.0, help="leave out trials that took longer")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args()
    with PaperStore(STORE, must_exist=True) as store:
        known = [each for each in store.rows() if each.seconds <= options.seconds]
    drawn = np.random.RandomState(options.seed).permutation(len(known))[: options.trials]
    n_equal, largest = 0, 0.0
    for before in sorted((known[i] for i in drawn), key=lambda result: result.trial):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = measure(before.trial)
        difference = max(abs(getattr(after, name) - getattr(before, name)) for name in METRICS)
        verdict = "equal" if difference == 0.0 else f"differs by {difference:.2g}"
        n_equal, largest = n_equal + (difference == 0.0), max(largest, difference)
        print(f"{before.trial}: {verdict}", flush=True)
    print(f"{n_equal} of {len(drawn)} trials are equal; the largest difference of a metric is {largest:.2g}.")


if __name__ == "__main__":
    main()
