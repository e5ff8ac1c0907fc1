"""What labels may be: text or whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.tables.errors import TableFileError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from dichotomies._common.typing import LabelArray

#: Up to here, floats are whole numbers without gaps.
_LARGEST = 2.0**53


def text_or_whole(values: npt.NDArray[Any], path: Path, name: str) -> LabelArray:
    """Labels as they are; bytes become text, and floats whole numbers where they are such."""
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
