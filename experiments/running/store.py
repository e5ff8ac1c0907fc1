"""The store of results: one SQLite file, safe against being killed at any moment.

The file has three tables. ``results`` holds one row per finished trial, under the columns of
its kind of result; the columns of the trial are its key. ``failures`` holds the trials that ended with an
error, under the same key, with the error in words, until they succeed. ``about`` holds what is true of the
whole file, such as the number of folds.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, get_type_hints

from experiments.running.result import Result, now, versions
from experiments.running.trial import Trial

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

#: Raised whenever the tables change, so that an older program does not misread a newer file.
SCHEMA_VERSION = 1
#: Marks the file as a store of results (the bytes "dich").
_APPLICATION_ID = 0x64696368
_SQL_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}
#: Seconds to wait while another process writes.
_PATIENCE = 60.0

T = TypeVar("T", bound=Trial)
R = TypeVar("R", bound=Result[Any])


class StoreError(OSError):
    """A store that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Failure(Generic[T]):
    """A trial that ended with an error."""

    trial: T
    sentence: str
    finished_at: str


class ResultStore(Generic[T, R]):
    """Results of one kind in a file, appended one at a time.

    Every result is a transaction of its own, written through to the disk before `add` returns: a process
    killed at any moment, also in the midst of writing, leaves every result whole or absent. Several
    processes may append to one file; the first result of a trial stays.

    Parameters
    ----------
    path : path
        The file; made where there is none.
    must_exist : bool, default=False
        Raise if the file is missing or empty, instead of making it.
    """

    #: The kind of result, set by subclasses.
    result_type: type[R]

    def __init__(self, path: str | os.PathLike[str], *, must_exist: bool = False) -> None:
        self.path = path
        self._of: type[R] = self.result_type
        self._key = self._of.trial_type().columns()
        with self._in_sentences():
            mode = "rw" if must_exist else "rwc"
            self._connection = sqlite3.connect(
                f"file:{_quoted(path)}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None
            )
        try:
            with self._in_sentences():
                # one file at rest, whatever is done to the process: the journal is gone after each commit
                self._connection.execute("PRAGMA journal_mode = DELETE")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._make_or_check(must_exist)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, result: R) -> None:
        """Append a result; nothing happens where the trial has one."""
        key, matches = ", ".join(self._key), " AND ".join(f"{name} = ?" for name in self._key)
        with self._transaction() as connection:
            connection.execute(
                f"INSERT INTO results VALUES ({_marks(self._of.columns())}) ON CONFLICT ({key}) DO NOTHING",
                result.values(),
            )
            connection.execute(f"DELETE FROM failures WHERE {matches}", result.trial.values())

    def add_failure(self, trial: T, sentence: str) -> None:
        """Note that a trial ended with an error, in place of an earlier note."""
        with self._transaction() as connection:
            values = (*trial.values(), sentence, now(), versions())
            connection.execute(f"INSERT OR REPLACE INTO failures VALUES ({_marks(values)})", values)

    def forget(self, trials: Iterable[T]) -> None:
        """Delete the results of trials that would not give the same numbers any more."""
        matches = " AND ".join(f"{name} = ?" for name in self._key)
        with self._transaction() as connection:
            connection.executemany(f"DELETE FROM results WHERE {matches}", [each.values() for each in trials])

    def finished(self) -> set[T]:
        """The trials that have a result."""
        return {self._trial(row) for row in self._read(f"SELECT {', '.join(self._key)} FROM results")}

    def rows(self) -> list[R]:
        """All results, in the order of their trials."""
        columns, key = ", ".join(self._of.columns()), ", ".join(self._key)
        found = self._read(f"SELECT {columns} FROM results ORDER BY {key}")
        return [self._of.from_values(row) for row in found]

    def failures(self) -> list[Failure[T]]:
        """The trials that ended with an error and have not succeeded since."""
        n, key = len(self._key), ", ".join(self._key)
        found = self._read(f"SELECT {key}, sentence, finished_at FROM failures ORDER BY {key}")
        return [Failure(self._trial(row[:n]), *row[n:]) for row in found]

    def _trial(self, values: tuple[Any, ...]) -> T:
        trial: T = self._of.trial_type()(*values)
        return trial

    def settle(self, name: str, value: int) -> None:
        """Fix something for the whole file, or refuse where it was fixed differently.

        Nothing is written where it was fixed before.

        Parameters
        ----------
        name : str
            What it is, such as "folds".
        value : int
            Its value.
        """
        if self._fixed(name) is None:
            with self._transaction() as connection:  # "or ignore": another process may have been faster
                connection.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, value))
        self.check(name, value)

    def check(self, name: str, value: int) -> None:
        """Refuse where something was fixed differently for the whole file; see `settle`."""
        fixed = self._fixed(name)
        if fixed not in (None, value):
            raise StoreError(
                f"The results in {self.path} were made with {fixed} {name}, not {value}, and cannot be mixed "
                f"with others: ask for {fixed}, or name another file to store results in."
            )

    def _fixed(self, name: str) -> int | None:
        found = self._read("SELECT value FROM about WHERE name = ?", (name,))
        return found[0][0] if found else None

    def _make_or_check(self, must_exist: bool) -> None:
        version = self._pragma("user_version")
        is_empty = version == 0 and not self._read("SELECT name FROM sqlite_master")
        if is_empty and must_exist:
            raise StoreError(f"{self.path} is empty, not a store of results: name another file.")
        if is_empty:
            self._make()
        elif self._pragma("application_id") != _APPLICATION_ID:
            raise StoreError(
                f"{self.path} is a database of something else, not a store of results: name another file."
            )
        elif version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} was written by a newer version of dichotomies (its tables are of version "
                f"{version}, this one knows {SCHEMA_VERSION}): upgrade dichotomies, or name another file."
            )
        elif self._columns() != self._of.columns():
            raise StoreError(
                f"{self.path} holds results of another kind: name the file of this command, or a new one."
            )

    def _columns(self) -> tuple[str, ...]:
        """The columns that the file has."""
        return tuple(row[1] for row in self._read("PRAGMA table_info(results)"))

    def _make(self) -> None:
        with self._transaction() as connection:
            for statement in _schema(self._of):  # "if not exists": another process may have been faster
                connection.execute(statement)

    def _pragma(self, name: str) -> int:
        ((value,),) = self._read(f"PRAGMA {name}")
        return int(value)

    def _read(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._in_sentences():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit all statements inside, or none."""
        with self._in_sentences(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection

    @contextmanager
    def _in_sentences(self) -> Iterator[None]:
        """Turn errors of SQLite into a `StoreError` that says what to do."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path} {_reason(error)} (SQLite: {error}).") from error


def _reason(error: sqlite3.DatabaseError) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return {
        sqlite3.SQLITE_NOTADB: "is not a store of results: name another file",
        sqlite3.SQLITE_CORRUPT: (
            "is damaged: save what is left with SQLite's '.recover', or move it away and start anew"
        ),
        sqlite3.SQLITE_BUSY: (
            f"is in use by another process, which held it for more than {_PATIENCE:.0f} seconds: "
            "end that process, or wait and start again; nothing finished is lost"
        ),
        sqlite3.SQLITE_CANTOPEN: "cannot be opened: see that the file, or its folder, exists and is yours",
        sqlite3.SQLITE_READONLY: "cannot be written to: see that the file and its folder are yours",
        sqlite3.SQLITE_FULL: "cannot grow, the disk is full: make room and start again; nothing is lost",
    }.get(code, "cannot be used")


def _quoted(path: str | os.PathLike[str]) -> str:
    from pathlib import Path
    from urllib.parse import quote

    return quote(str(Path(path).absolute()))


def _marks(values: tuple[Any, ...]) -> str:
    return ", ".join("?" * len(values))


def _columns_of(record: type) -> str:
    """The columns of a dataclass in SQL."""
    types = get_type_hints(record)
    names = [field.name for field in fields(record) if types[field.name] in _SQL_TYPES]
    return ", ".join(f"{name} {_SQL_TYPES[types[name]]} NOT NULL" for name in names)


def _schema(of: type[Result[Any]]) -> tuple[str, ...]:
    """The statements that make an empty file a store of these results."""
    trial = of.trial_type()
    columns, key = _columns_of(trial), ", ".join(trial.columns())
    return (
        f"CREATE TABLE IF NOT EXISTS results ({columns}, {_columns_of(of)}, PRIMARY KEY ({key}))",
        f"CREATE TABLE IF NOT EXISTS failures ({columns}, sentence TEXT NOT NULL, "
        f"finished_at TEXT NOT NULL, versions TEXT NOT NULL, PRIMARY KEY ({key}))",
        "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
        f"PRAGMA application_id = {_APPLICATION_ID}",
        f"PRAGMA user_version = {SCHEMA_VERSION}",
    )
