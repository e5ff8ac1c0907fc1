"""`Dialect`: how a text file is written (delimiter, encoding, decimal mark), as said or as found in it."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO, TextIOWrapper
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from dichotomies.tables.errors import TableFileError

#: Bytes at the beginning of a file that its dialect is found in.
_HEAD_BYTES = 2**20
_HEAD_ROWS = 200
_DELIMITERS = ",;\t|"
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
#: Encoding of files that are not UTF-8: Latin-1 with typographic quotes and the euro sign.
_OTHERWISE = "cp1252"
_WITH_COMMA, _WITH_POINT = re.compile(r"\s*[-+]?\d*,\d+\s*"), re.compile(r"\s*[-+]?\d*\.\d+\s*")


@dataclass(frozen=True)
class Dialect:
    """Encoding and marks of a text file; None where they are to be found in the file itself.

    Attributes
    ----------
    delimiter : str, optional
        Mark between values.
    encoding : str, optional
        Encoding of the text: a name that Python knows.
    decimal : str, optional
        Decimal mark, a point or a comma.
    max_line : int
        Bytes that a line, or a row with line breaks in it, may have.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    max_line: int = 16 * 2**20

    def found_in(self, path: Path, delimiter: str = ",") -> Dialect:
        """Complete the dialect by the beginning of a file; where that shows no delimiter, it is the default.

        A file that is not UTF-8 has the encoding cp1252, which contains Latin-1.
        """
        head = _head(path)
        encoding = self.encoding or _encoding_of(head)
        text = _decoded(head, encoding, path)
        mark = self.delimiter or _delimiter_of(text, delimiter)
        return replace(
            self, delimiter=mark, encoding=encoding, decimal=self.decimal or _decimal_of(text, mark)
        )


def _head(path: Path) -> bytes:
    with opened(path) as file:
        return file.read(_HEAD_BYTES)


def opened(path: Path) -> IO[bytes]:
    """Open a file, decompressed where its name ends in .gz."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def _encoding_of(head: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # may end within a character
    except UnicodeDecodeError:
        return _OTHERWISE
    return "utf-8"


def _decoded(head: bytes, encoding: str, path: Path) -> str:
    try:
        return codecs.getincrementaldecoder(encoding)("replace").decode(head).removeprefix("\ufeff")
    except LookupError:
        raise TableFileError(
            f"There is no encoding {encoding!r} to read {path}; utf-8, latin-1, cp1252 and utf-16 are usual."
        ) from None


def _rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows; the last one may be incomplete, and is left out."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter):
            rows.append(row)
            if len(rows) > _HEAD_ROWS:
                break
    except csv.Error:  # such as a field beyond the limit of the csv module
        pass
    return [row for row in (rows[:-1] if len(rows) > 2 else rows) if row]


def _delimiter_of(text: str, default: str) -> str:
    """Return the mark that divides all rows into equally many values, and most; else the header's most."""

    def quality(mark: str) -> tuple[bool, int, bool]:
        lengths = [len(row) for row in _rows(text, mark)] or [1]
        return len(set(lengths)) == 1 and lengths[0] > 1, lengths[0], mark == default

    best: str = max([default, *_DELIMITERS], key=quality)
    return best


def _decimal_of(text: str, delimiter: str) -> str:
    """Return a comma if numbers are written with one, and none with a point."""
    cells = [cell for row in _rows(text, delimiter)[1:] for cell in row]
    if any(_WITH_POINT.fullmatch(cell) for cell in cells):
        return "."
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    if delimiter == "," and all(len(cell.strip().partition(",")[2]) == 3 for cell in commas):
        return "."
    return "," if commas else "."


@contextmanager
def as_utf8(path: Path, encoding: str) -> Iterator[Path]:
    """The path of a file with the same text in UTF-8: the file itself, or a temporary copy."""
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "ascii"):
        yield path
        return
    # A copy, because pyarrow's own conversion calls Python from its threads, also after Python's end.
    with NamedTemporaryFile(suffix=".csv") as copy, opened(path) as file:
        lines = 1
        try:
            text = TextIOWrapper(file, encoding=encoding, newline="")
            while part := text.read(_HEAD_BYTES):
                copy.write(part.encode("utf-8"))
                lines += part.count("\n")
        except UnicodeDecodeError as error:
            raise TableFileError(
                f"{path} is not {encoding} text from line {lines} on ({error.reason}); name its encoding "
                "(--encoding)."
            ) from error
        copy.flush()
        yield Path(copy.name)
