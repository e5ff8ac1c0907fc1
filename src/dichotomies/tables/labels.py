"""Validation of labels: text or integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import LabelArray
from dichotomies.tables.errors import TableFileError

#: Largest float up to which all integers are representable.
_LARGEST = 2.0**53


def text_or_integer(values: npt.NDArray[Any], path: Path, name: str) -> LabelArray:
    """Return the labels, with bytes decoded and integral floats converted to integers."""
    if values.dtype.kind == "S":
        try:
            return np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            raise TableFileError(f"{path} has labels in {name!r} that are not UTF-8 text.") from None
    if values.dtype.kind != "f":
        return values
    wrong = np.flatnonzero(~((np.abs(values) <= _LARGEST) & (values == np.round(values))))
    if len(wrong):
        raise TableFileError(
            f"{path} has the label {values[wrong[0]]:g} in {name!r}; labels must be text or whole "
            "numbers, and no larger than 2**53 where they are stored as floats."
        )
    return values.astype(np.int64)
