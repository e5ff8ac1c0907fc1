"""The store keeps what it was given, whatever happens to the process, and says what is wrong with a file."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.reproduce.trial import PaperResult, PaperStore
from experiments.running.store import SCHEMA_VERSION, StoreError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


def test_what_was_added_comes_back_from_the_file(path, make_result):
    added = [make_result(nll=fold + 0.1, fold=fold) for fold in range(3)]
    with PaperStore(path) as store:
        for result in reversed(added):
            store.add(result)
    with PaperStore(path) as store:
        assert store.rows() == added
        assert store.finished() == {result.trial for result in added}


def test_the_first_result_of_a_trial_stays(path, make_result):
    with PaperStore(path) as store:
        store.add(make_result(nll=1.0))
        store.add(make_result(nll=2.0))
        assert [result.nll for result in store.rows()] == [1.0]


def test_a_failure_is_noted_until_the_trial_succeeds(path, make_result):
    result = make_result()
    with PaperStore(path) as store:
        store.add_failure(result.trial, "first")
        store.add_failure(result.trial, "second")
        assert [(each.trial, each.sentence) for each in store.failures()] == [(result.trial, "second")]
        assert store.finished() == set()
        store.add(result)
        assert store.failures() == []


def test_what_is_not_a_number_is_no_result(make_result):
    with pytest.raises(ValueError, match=r"nll, accuracy of .* is NaN"):
        make_result(nll=float("nan"), accuracy=float("nan"))


def test_a_store_takes_one_number_of_folds(path):
    with PaperStore(path) as store:
        store.settle("folds", 10)
        store.settle("folds", 10)
        with pytest.raises(StoreError, match="made with 10 folds, not 5"):
            store.settle("folds", 5)


def test_what_is_settled_is_read_and_not_written_again(path, monkeypatch):
    monkeypatch.setattr("experiments.running.store._PATIENCE", 0.01)
    with PaperStore(path) as store:
        store.settle("folds", 10)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # from here on, nobody else can write
    with PaperStore(path) as store:
        store.settle("folds", 10)
        with pytest.raises(StoreError, match="in use by another process"):
            store.settle("other", 10)
    other.close()


def test_what_was_not_settled_is_not_refused(path):
    with PaperStore(path) as store:
        store.check("folds", 5)
        store.settle("folds", 10)
        with pytest.raises(StoreError, match="made with 10 folds, not 5"):
            store.check("folds", 5)


def test_an_empty_file_that_must_be_a_store_stays_empty(path):
    path.touch()
    with pytest.raises(StoreError, match="is empty, not a store of results"):
        PaperStore(path, must_exist=True)
    assert path.read_bytes() == b""
    PaperStore(path).close()
    assert path.stat().st_size > 0


def test_at_rest_it_is_a_single_file(path, make_result):
    with PaperStore(path) as store:
        store.add(make_result())
        assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_transaction_that_was_killed_leaves_no_trace(path, make_result):
    with PaperStore(path) as store:
        store.add(make_result())
    writes_and_dies = (
        "import os, signal, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN IMMEDIATE');"
        "c.executemany('INSERT INTO about VALUES (?, 1)', ((str(i) * 999,) for i in range(999)));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", writes_and_dies, str(path)], check=False)
    assert path.with_name(f"{path.name}-journal").exists()  # it had begun to write to the file
    with PaperStore(path) as store:
        assert store.rows() == [make_result()]
        store.add(make_result(fold=1))
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM about").fetchone() == (0,)
    connection.close()


_APPENDER = """
import sys
from experiments.tests.running.test_store import append
append(sys.argv[1], repeat=2)
"""


def append(path, repeat):
    """Append results that another process appends too, and some of one's own."""
    with PaperStore(path) as store:
        first = store.rows()[0]
        for fold in range(10):
            for where in (1, repeat):
                store.add(replace(first, trial=replace(first.trial, fold=fold, repeat=where)))


def test_processes_that_append_at_once_lose_nothing(path, make_result):
    with PaperStore(path) as store:
        store.add(make_result())
    other = subprocess.Popen([sys.executable, "-c", _APPENDER, path], cwd=Path(__file__).parents[3])
    append(path, repeat=3)
    assert other.wait() == 0
    with PaperStore(path) as store:
        places = [(result.trial.repeat, result.trial.fold) for result in store.rows()]
    assert places == [(0, 0)] + [(repeat, fold) for repeat in (1, 2, 3) for fold in range(10)]


def test_text_is_not_a_store(path):
    path.write_text("these are not the results you are looking for" * 100)
    with pytest.raises(StoreError, match="is not a store of results: name another file"):
        PaperStore(path)


def test_another_database_is_not_a_store(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="a database of something else"):
        PaperStore(path)


def test_a_damaged_store_says_so(path, make_result):
    with PaperStore(path) as store:
        for fold in range(60):
            store.add(make_result(fold=fold))
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"), PaperStore(path) as store:
        store.rows()


def test_a_newer_store_is_not_touched(path):
    PaperStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="written by a newer version of dichotomies"):
        PaperStore(path)
    assert path.read_bytes() == before


def test_a_missing_store_is_made_unless_it_must_be_there(path):
    with pytest.raises(StoreError, match="cannot be opened"):
        PaperStore(path, must_exist=True)
    assert not path.exists()
    PaperStore(path).close()
    assert path.exists()


def test_a_locked_store_says_who_to_wait_for(path, make_result, monkeypatch):
    monkeypatch.setattr("experiments.running.store._PATIENCE", 0.01)
    with PaperStore(path) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="in use by another process"):
            store.add(make_result())
        other.close()
        store.add(make_result())


def test_columns_are_those_of_the_documented_result(path):
    PaperStore(path).close()
    connection = sqlite3.connect(path)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
    connection.close()
    assert columns == list(PaperResult.columns())
