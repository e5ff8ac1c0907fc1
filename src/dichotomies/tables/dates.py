"""`DateFeatures`: dates and times as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.typing import FloatArray, Matrix
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Such
from dichotomies.tables.errors import TableFileError, pyarrow
from dichotomies.tables.table import MISSING

#: Ways of writing dates, by what users call them; ISO 8601 may have a time and a zone.
FORMATS = {
    "year-month-day": "",
    "day.month.year": "%d.%m.%Y",
    "day.month.year hour:minute": "%d.%m.%Y %H:%M",
    "day.month.year hour:minute:second": "%d.%m.%Y %H:%M:%S",
    "day/month/year": "%d/%m/%Y",
    "day/month/year hour:minute": "%d/%m/%Y %H:%M",
    "month/day/year": "%m/%d/%Y",
    "month/day/year hour:minute": "%m/%d/%Y %H:%M",
    "year/month/day": "%Y/%m/%d",
}
_SHORTEST = len("1.1.2001")
_DAY = 86_400.0
#: Periods in seconds of which the phase is a feature: year, week, day.
_PERIODS = np.array([365.2425 * _DAY, 7 * _DAY, _DAY])


def date_formats(values: Any, among: list[str] | None = None) -> list[str]:
    """Return the formats in which all values (an Arrow array of texts) are dates."""
    compute = pyarrow(".compute")
    if compute.min(compute.utf8_length(values)).as_py() < _SHORTEST:
        return []
    possible = [name for name in among or FORMATS if _seconds(values.slice(0, 1), name) is not None]
    return [name for name in possible if _seconds(values, name) is not None]


def _seconds(values: Any, name: str) -> FloatArray | None:
    """Return the seconds since 1970; None if a text is no date of this format."""
    arrow, compute = pyarrow(), pyarrow(".compute")
    if FORMATS[name]:
        stamps = compute.strptime(values, format=FORMATS[name], unit="s", error_is_null=True)
        return None if stamps.null_count else _as_floats(stamps)
    for zone in (None, "UTC"):
        try:
            return _as_floats(values.cast(arrow.timestamp("us", zone))) / 1e6
        except arrow.ArrowInvalid:
            pass
    return None


def _as_floats(stamps: Any) -> FloatArray:
    numbers: FloatArray = stamps.cast("int64").to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


@savable(
    "date-features",
    column=str,
    format=Such(FORMATS.__contains__, "is a way of writing dates"),
    mean=float,
    scale=Such(lambda it: isinstance(it, float) and it > 0, "is positive"),
)
@dataclass(frozen=True)
class DateFeatures:
    """Features of a column of dates: the date on a scale, its place in the year, week and day, and no date.

    The place in a period is a sine and a cosine, so that December is beside January. A missing date is zero
    in all of them, and one in a feature of its own.

    Attributes
    ----------
    column : str
        The name of the column.
    format : str
        Format of the dates, one of `FORMATS`.
    mean, scale : float
        Mean and standard deviation in seconds (since 1970) of the dates of the training rows.

    Examples
    --------
    >>> from dichotomies.tables import DateFeatures
    >>> features = DateFeatures.fit("born", ["31.12.1999", "", "01.01.2001"])
    >>> features.format
    'day.month.year'
    >>> features.matrix(["01.01.2001", ""]).toarray()[:, [0, -1]]
    array([[1., 0.],
           [0., 1.]])
    """

    column: str
    format: str
    mean: float
    scale: float

    #: Number of features.
    n_features = 2 + 2 * len(_PERIODS)

    @classmethod
    def fit(cls, column: str, texts: Sequence[str]) -> DateFeatures:
        """Find out how dates are written, and their mean and standard deviation."""
        values = _array([text for text in texts if not _is_blank(text)])
        formats = date_formats(values.unique()) if len(values) else []
        if not formats:
            raise TableFileError(
                f"The column {column!r} cannot be read as dates: its values should all be written as one of "
                f"{', '.join(FORMATS)}; read it as something else (--categorical, --text, --ignore)."
            )
        seconds = cast("FloatArray", _seconds(values, formats[0]))
        return cls(column, formats[0], float(seconds.mean()), float(seconds.std()) or 1.0)

    @property
    def description(self) -> str:
        """One phrase for users."""
        return self.format

    def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the features of some dates, a CSR matrix; raise if one is written otherwise."""
        blank = np.array([_is_blank(text) for text in texts], dtype=bool)
        dates = [text for text in texts if not _is_blank(text)]
        found = _seconds(_array(dates), self.format)
        if found is None:
            wrong = next(text for text in dates if _seconds(_array([text]), self.format) is None)
            raise TableFileError(
                f"The column {self.column!r} has {wrong!r} where the model was fitted with dates written as "
                f"{self.format}; correct it."
            )
        features = np.zeros((len(texts), self.n_features))
        features[~blank, 0] = (found - self.mean) / self.scale
        features[~blank, 1:-1] = _phases(found)
        features[blank, -1] = 1
        return csr_array(features)


def _is_blank(text: str) -> bool:
    return text.strip() in MISSING


def _array(texts: Sequence[str]) -> Any:
    return pyarrow().array([text.strip() for text in texts], "string")


def _phases(seconds: FloatArray) -> FloatArray:
    angles = 2 * np.pi * seconds[:, None] / _PERIODS
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(len(seconds), -1)
