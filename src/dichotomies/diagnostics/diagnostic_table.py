"""`DiagnosticTable`: named columns of equal length, printable and convertible to data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

_SHOWN_ROWS = 20


@dataclass(frozen=True, repr=False)
class DiagnosticTable:
    """Named columns of equal length.

    Parameters
    ----------
    columns : mapping of str to array
        The columns by name.

    Examples
    --------
    >>> from dichotomies.diagnostics import DiagnosticTable
    >>> table = DiagnosticTable({"depth": [0, 1], "nll": [0.25, 0.5]})
    >>> table
    depth     nll
        0  0.2500
        1  0.5000
    >>> table["nll"].sum()
    np.float64(0.75)
    """

    columns: Mapping[str, npt.NDArray[Any]]

    def __post_init__(self) -> None:
        columns = {name: np.asarray(values) for name, values in self.columns.items()}
        object.__setattr__(self, "columns", columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over rows as dictionaries of plain Python values."""
        values = [column.tolist() for column in self.columns.values()]
        for row in zip(*values, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def top(self, n: int, by: str) -> DiagnosticTable:
        """Return the `n` rows with the largest values of the column `by`, largest first."""
        order = np.argsort(-self[by], kind="stable")[:n]
        return DiagnosticTable({name: column[order] for name, column in self.columns.items()})

    def to_pandas(self) -> Any:
        """Convert to a pandas data frame."""
        return _frame_class("pandas")(dict(self.columns))

    def to_polars(self) -> Any:
        """Convert to a polars data frame."""
        return _frame_class("polars")(dict(self.columns))

    def __repr__(self) -> str:
        shown = [
            [name, *map(_as_text, column[:_SHOWN_ROWS].tolist())] for name, column in self.columns.items()
        ]
        widths = [max(map(len, cells)) for cells in shown]
        lines = ["  ".join(map(str.rjust, cells, widths)) for cells in zip(*shown, strict=True)]
        if len(self) > _SHOWN_ROWS:
            lines.append(f"... {len(self)} rows in all")
        return "\n".join(lines)


def _as_text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _frame_class(library: str) -> Any:
    try:
        return import_module(library).DataFrame
    except ImportError as error:
        raise ImportError(
            f"to_{library}() needs {library}: pip install {library}. The columns are plain arrays and can be "
            "used without it."
        ) from error
