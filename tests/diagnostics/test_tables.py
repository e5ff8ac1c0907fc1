"""Tables: plain columns that print themselves and turn into data frames."""

import sys

import numpy as np
import pytest

from dichotomies.diagnostics import Table


@pytest.fixture
def table():
    return Table({"name": np.array(["a", "b", "c"]), "value": np.array([0.5, 2.0, 1.0])})


def test_rows_and_columns(table):
    assert len(table) == 3
    assert table["value"].tolist() == [0.5, 2.0, 1.0]
    assert list(table)[1] == {"name": "b", "value": 2.0}


def test_top_orders_by_a_column(table):
    assert table.top(2, by="value")["name"].tolist() == ["b", "c"]


def test_long_tables_print_their_beginning():
    assert repr(Table({"n": np.arange(100)})).endswith("... 100 rows in all")


def test_data_frames(table):
    pandas = pytest.importorskip("pandas")
    assert isinstance(table.to_frame(), pandas.DataFrame)
    assert table.to_frame("pandas")["value"].tolist() == [0.5, 2.0, 1.0]
    with pytest.raises(ValueError, match="'pandas' or 'polars', not by 'excel'"):
        table.to_frame("excel")


def test_without_a_data_frame_library_a_sentence_names_one(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"needs pandas or polars: pip install pandas\."):
        table.to_frame()
