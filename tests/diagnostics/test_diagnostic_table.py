"""Tables: plain columns that print themselves and turn into data frames."""

import sys

import numpy as np
import pytest

from dichotomies.diagnostics import DiagnosticTable


@pytest.fixture
def table():
    return DiagnosticTable({"name": np.array(["a", "b", "c"]), "value": np.array([0.5, 2.0, 1.0])})


def test_rows_and_columns(table):
    assert len(table) == 3
    assert table["value"].tolist() == [0.5, 2.0, 1.0]
    assert list(table)[1] == {"name": "b", "value": 2.0}


def test_top_orders_by_a_column(table):
    assert table.top(2, by="value")["name"].tolist() == ["b", "c"]


def test_long_tables_print_their_beginning():
    assert repr(DiagnosticTable({"n": np.arange(100)})).endswith("... 100 rows in all")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_of_the_library_that_is_named(table, library):
    module = pytest.importorskip(library)
    frame = getattr(table, f"to_{library}")()
    assert isinstance(frame, module.DataFrame)
    assert list(frame.columns) == ["name", "value"]
    assert frame["name"].to_list() == ["a", "b", "c"]
    assert frame["value"].to_list() == [0.5, 2.0, 1.0]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_the_library_a_sentence_names_it(table, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"to_{library}\(\) needs {library}: pip install {library}\."):
        getattr(table, f"to_{library}")()
