"""What is written is read again; a file appears whole or not at all."""

import csv
import gzip
import os
import stat
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dichotomies.tables import TableFileError, open_writer

FIRST = {
    "row": np.array([0, 1]),
    "label": np.ma.masked_array(['é, "x"\n', "b"], [False, True]),
    "probability": np.ma.masked_array([0.123456789, 0.5], [False, True]),
}
SECOND = {
    "row": np.array([2]),
    "label": np.ma.masked_array(["c"], [False]),
    "probability": np.ma.masked_array([1e-9], [False]),
}


@pytest.mark.parametrize(("name", "mark"), [("p.csv", ","), ("p.tsv", "\t"), ("p.csv.gz", ",")])
def test_text_files_hold_what_was_written(name, mark, tmp_path):
    with open_writer(tmp_path / name) as writer:
        writer.write(FIRST)
        writer.write(SECOND)
    opened = gzip.open if name.endswith("gz") else open
    with opened(tmp_path / name, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=mark))
    assert rows == [
        ["row", "label", "probability"],
        ["0", 'é, "x"\n', "0.123457"],
        ["1", "", ""],
        ["2", "c", "1e-09"],
    ]


def test_parquet_files_hold_what_was_written_to_the_last_digit(tmp_path):
    with open_writer(tmp_path / "p.parquet") as writer:
        writer.write(FIRST)
        writer.write(SECOND)
    table = pq.read_table(tmp_path / "p.parquet").to_pydict()
    assert table == {
        "row": [0, 1, 2],
        "label": ['é, "x"\n', None, "c"],
        "probability": [0.123456789, None, 1e-9],
    }


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.csv.gz"])
def test_a_failure_leaves_what_was_there(name, tmp_path):
    path = tmp_path / name
    path.write_text("before")

    def fail():
        with open_writer(path) as writer:
            writer.write(FIRST)
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("p.npz", "tables are written as .csv"),
        ("p.xlsx", "p.xlsx cannot be written: tables are written as .csv"),
        ("no/p.csv", "There is no folder"),
        (".", "tables are written as .csv"),
    ],
)
def test_places_that_cannot_be_written_are_refused(name, sentence, tmp_path):
    with pytest.raises(TableFileError, match=sentence), open_writer(tmp_path / name):
        pass


def test_a_pipe_is_not_replaced_by_a_table(tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    with pytest.raises(TableFileError, match="is a device or a pipe"), open_writer(tmp_path / "p.csv"):
        pass
    assert stat.S_ISFIFO((tmp_path / "p.csv").stat().st_mode)


def test_errors_name_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def fail(self, target):
        raise PermissionError(13, "Permission denied", str(self), None, str(target))

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(TableFileError) as refusal, open_writer(tmp_path / "p.csv") as writer:
        writer.write(FIRST)
    said = f"{tmp_path / 'p.csv'} could not be written (Permission denied); whatever was there is unchanged."
    assert str(refusal.value) == said
