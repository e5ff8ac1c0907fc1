"""`fit_batches`: fitting to rows that come in batches and do not fit into memory."""

from __future__ import annotations

# what batches need is imported where it is used: it takes long, and few programs ask for it
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from joblib import hash as joblib_hash
from sklearn.utils.validation import _num_samples

from dichotomies._common.parallel import Context
from dichotomies._common.progress import say
from dichotomies._common.validation import is_text
from dichotomies.estimators.fitting import Fitting
from dichotomies.learners.base import KeepsStatistics
from dichotomies.rows import Rows
from dichotomies.training.plan import Plan
from dichotomies.training.train import Trained

#: Bytes for rows and the copies that learners make of them, unless `max_memory` says more or less.
_MEMORY = 2**30


class BatchFits(Fitting):
    """Mixin of the estimators: fitting to batches of rows."""

    def fit_batches(
        self,
        make_batches: Callable[[], Iterable[tuple[Any, ...]]],
        *,
        spill: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit to rows that come in batches, of which only some are in memory at a time.

        Naive Bayes takes one pass: statistics of the classes are exact. With external calibration it takes a
        second one, in which rows of one fold are predicted by a model of the others. For all other learners
        rows are counted in a first pass and written to files, sorted by class, in a second; of boosted trees,
        a byte for each value, the number of its bin. Then nodes are trained on the rows of their classes, as
        many at a time as the parameter `max_memory` allows (1 GiB by default; libraries and one batch come in
        addition). The few nodes at the top that have more rows are trained on a stratified sample of them;
        those of logistic regression on dense rows without internal calibration then reach the optimum for all
        of their rows by passes over the files. External calibrators are fitted to rows that were held
        out, a tenth or fewer, with class probabilities of up to 1 GiB in a file;
        ``internal_calibration="auto"`` is none. Rows that fit into memory all together are trained and
        calibrated on as by `fit`.

        Parameters
        ----------
        make_batches : callable
            Starts an iterator of ``(X, y)`` or ``(X, y, sample_weight)``, again at every call, with the same
            rows in the same order. Of files, see `dichotomies.tables.parquet_batches`.
        spill : path, optional
            Folder for the files, as large as the rows, removed in the end. If a fit is interrupted, the next
            one with the same folder does not repeat the passes that were finished. By default a temporary
            folder.

        Returns
        -------
        self
        """
        from dichotomies.training.batches import planned, rows_in_memory

        with self._whole():
            make_batches = Source(make_batches)
            self._forget_fit()
            first = next(make_batches(), None)
            if first is None:
                raise ValueError(
                    "There is no batch of rows: make_batches() must start an iterator of (X, y)."
                )
            if self.is_to_choose():
                raise ValueError(
                    "fit_batches does not choose the base learner; name one, such as "
                    "estimator=LogisticRegression()."
                )
            plan, X = self._planned(first[0])
            rows = self._validated_batch(X, first[1], first[2] if len(first) == 3 else None, reset=True)
            max_memory, context = plan.max_memory or _MEMORY, self._context()
            plan = replace(planned(plan), max_memory=None)
            if isinstance(plan.learner, KeepsStatistics):
                most = rows_in_memory(max_memory, rows)
                trained, n_rows = self._fit_statistics(plan, make_batches, max_memory, most, spill, context)
            else:
                key = {"n_features": rows.n_features, "first batch": _digest(rows)}
                trained, n_rows = self._fit_spilled(plan, make_batches, max_memory, spill, key, context)
            self._take_fit(plan, trained, n_rows)
        return self

    def _fit_statistics(
        self, plan: Plan, make_batches: Any, max_memory: int, most: int, spill: Any, context: Context
    ) -> tuple[Trained, int]:
        """Add the statistics of all batches, and keep a sample of `most` rows."""
        from dichotomies.rows.spilled import SpillFolder
        from dichotomies.training.partial_fitting import learn_batches

        sampling = replace(plan, keep_rows=plan.keep_rows or most)
        with _folder(spill) as path:
            folder = SpillFolder(path, {})
            batches = lambda: self._batches(make_batches)  # noqa: E731
            trained, statistics = learn_batches(sampling, batches, context, path, max_memory)
            folder.remove()
        self.class_count_ = statistics.class_size
        if plan.keep_rows:
            self.statistics_ = statistics
        else:
            trained = trained._replace(kept=None)
        return trained, int(statistics.size.sum())

    def _fit_spilled(
        self,
        plan: Plan,
        make_batches: Any,
        max_memory: int,
        spill: Any,
        key: dict[str, Any],
        context: Context,
    ) -> tuple[Trained, int]:
        """Count, spill and train; files of an interrupted fit are taken up if they are of the same `key`."""
        from dichotomies.rows.spilled import RowCounts, SpilledRows, SpillFolder
        from dichotomies.training.batches import SpilledTraining
        from dichotomies.training.binned_rows import BinnedRows, RowSample, is_boosting, save_binning

        learner: Any = plan.learner
        is_binned = is_boosting(plan)
        key |= {"bins of": repr(learner.estimator)} if is_binned else {}
        seed = context.rng.randint(2**31 - 1)  # drawn in any case: a fit that is taken up goes on alike
        with _folder(spill) as path:
            folder = SpillFolder(path, key)
            if "counting" not in folder.finished:
                self._say("counting rows")
                batches = self._batches(make_batches)
                if is_binned:
                    sample = RowSample(max_memory // 4, np.random.RandomState(seed))
                    counts = RowCounts.of(sample.of(batches))
                    save_binning(sample.binning(learner, context.n_jobs), path)
                else:
                    counts = RowCounts.of(batches)
                folder.counted(counts)
            counts = folder.counts()
            counts.check_classes()
            spilled = BinnedRows.of(path, counts, learner) if is_binned else SpilledRows(path, counts)
            if "spilling" not in folder.finished:
                self._say(f"writing {counts.size.sum():,} rows to {path}")
                spilled.write(self._batches(make_batches))
                folder.finish("spilling")
            self.class_count_ = counts.size
            trained = SpilledTraining(plan, spilled, max_memory, context).run()
            folder.remove()
        return trained, int(counts.size.sum())

    def _batches(self, make_batches: Any) -> Iterator[Rows]:
        """Checked batches, each with the classes that it has."""
        for batch in make_batches():
            X, y, *weight = batch
            rows = self._validated_batch(X, y, weight[0] if weight else None)
            yield replace(rows, classes=rows.classes.astype(str)) if is_text(rows.classes) else rows

    def _take_fit(self, plan: Plan, trained: Trained, n_rows: int) -> None:
        self._take_trained(trained, n_rows)
        self.classes_, self.structure_ = self.model_.tree.classes, None
        self.learner_ = plan.learner.description

    def _say(self, text: str) -> None:
        if self.verbose:
            say(text)


class Source:
    """Batches that have rows, from the first one on at every call.

    Parameters
    ----------
    make_batches : callable
        See `BatchFits.fit_batches`.
    """

    def __init__(self, make_batches: Any) -> None:
        if not callable(make_batches):
            raise TypeError(
                "make_batches must be a function that starts an iterator of (X, y), again at every call, "
                f"but is of type {type(make_batches).__name__}; of a list, give lambda: iter(batches)."
            )
        self._make_batches = make_batches
        self._last: Any = None

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        """Start again."""
        batches = self._make_batches()
        if batches is self._last and iter(batches) is batches:
            raise ValueError(
                "make_batches() gave the same iterator twice, whose first batches are lost; it must start a "
                "new one at every call."
            )
        self._last = batches
        for batch in batches:
            if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
                size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
                raise TypeError(
                    f"A batch must be (X, y) or (X, y, sample_weight), but is a {type(batch).__name__}{size}."
                )
            if _num_samples(batch[0]):
                yield tuple(batch)


def _digest(rows: Rows) -> str:
    """Digest of features, labels and weights, by which rows of a folder are recognised."""
    return str(joblib_hash((rows.X, rows.codes, rows.classes, rows.weight)))


@contextmanager
def _folder(given: Any) -> Iterator[Path]:
    """The folder given, or a temporary one, which is removed."""
    if given is not None:
        yield Path(given)
        return
    with TemporaryDirectory(prefix="dichotomies-") as folder:
        yield Path(folder) / "rows"
