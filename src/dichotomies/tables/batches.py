"""Files and Arrow record batches as batches of rows, for `fit_batches`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dichotomies.tables.errors import TableFileError, pyarrow
from dichotomies.tables.model import TableModel
from dichotomies.tables.table import Columns, TableFile

#: Rows of a batch, and rows from which it is found out how columns become features.
_BATCH_ROWS, _FIRST_ROWS = 65_536, 100_000

Batch = tuple[Any, ...]


def parquet_batches(
    paths: Sequence[str | os.PathLike[str]], label: str, *, weight: str | None = None, rows: int = _BATCH_ROWS
) -> Callable[[], Iterator[Batch]]:
    """Batches of Parquet files whose columns are numbers, for `fit_batches`.

    Parameters
    ----------
    paths : sequence of paths
        Files with the same columns.
    label : str
        Column of the labels.
    weight : str, optional
        Column of row weights.
    rows : int, default=65536
        Rows of a batch.

    Returns
    -------
    callable
        Starts an iterator of ``(X, y)`` or ``(X, y, weight)``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.tables import parquet_batches
    >>> frame = load_iris(as_frame=True).frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [Path(folder, f"part-{i}.parquet") for i in range(3)]
    ...     for i, path in enumerate(paths):
    ...         frame[i::3].to_parquet(path)
    ...     batches = parquet_batches(paths, label="target")
    ...     clf = NestedDichotomyClassifier(LogisticRegression(), random_state=0).fit_batches(batches)
    >>> clf.classes_
    array([0, 1, 2])
    """

    def record_batches() -> Iterator[Any]:
        for path in paths:
            with pyarrow(".parquet").ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=rows, use_threads=False)

    return arrow_batches(record_batches, label, weight=weight)


def arrow_batches(
    make_record_batches: Callable[[], Iterable[Any]], label: str, *, weight: str | None = None
) -> Callable[[], Iterator[Batch]]:
    """Batches of Arrow record batches whose columns are numbers; see `parquet_batches`.

    Parameters
    ----------
    make_record_batches : callable
        Starts an iterator of record batches, or tables, again at every call.
    """

    def batches() -> Iterator[Batch]:
        for batch in make_record_batches():
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            if label not in columns:
                raise TableFileError(f"A batch has no column {label!r}; it has {', '.join(columns)}.")
            y = columns.pop(label).to_numpy(zero_copy_only=False)
            own = () if weight is None else (columns.pop(weight).to_numpy(zero_copy_only=False),)
            X = np.stack([each.to_numpy(zero_copy_only=False) for each in columns.values()], axis=1)
            yield X, y.astype(str) if y.dtype == object else y, *own

    return batches


def fit_to_files(
    classifier: Any,
    files: Sequence[TableFile],
    columns: Columns,
    *,
    label: str | None = None,
    ngrams: str = "word",
    scaled: bool | None = None,
    spill: Any = None,
) -> TableModel:
    """Fit a classifier to files of the same columns, batch by batch.

    Terms of texts, categories, and the scale of numbers are those of the first 100,000 rows of the first
    file.

    Parameters
    ----------
    columns : Columns
        Columns to read, with their roles.
    spill : path, optional
        See `fit_batches`.
    """
    first = next(iter(files[0].batches(columns, _FIRST_ROWS)))
    model = TableModel.prepared(classifier, first, label=label, ngrams=ngrams, scaled=scaled)

    def batches() -> Iterator[Batch]:
        for file in files:
            for table in file.batches(columns, _BATCH_ROWS):
                own = () if table.weight is None else (table.weight,)
                yield model.matrix(table), table.labels, *own

    classifier.fit_batches(batches, spill=spill)
    return model
