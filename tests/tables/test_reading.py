"""Every format gives the same table, whole or in batches, with labels as they are in the file."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import issparse

from dichotomies.tables import Columns, Table, TableFileError, open_table

ENDINGS = ["csv", "csv.gz", "tsv", "parquet", "svm", "svm.gz", "npz", "fortran", "sparse"]


def dense(X):
    return X.toarray() if issparse(X) else X


@pytest.fixture
def file_of(tmp_path):
    """Write a text file and open it."""

    def write(text, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return open_table(path, **options)

    return write


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_same_table(ending, written, rows, names):
    file = open_table(written[ending])
    table = file.read(Columns(label=file.default_label or "label"))
    X, y = rows
    np.testing.assert_array_equal(dense(table.X), X)
    assert table.labels.astype(str).tolist() == y.astype(str).tolist()
    assert table.names == (names if file.default_label is None else None)


@pytest.mark.parametrize("ending", ENDINGS)
def test_batches_are_the_whole_in_pieces_of_bounded_size(ending, written, rows):
    file = open_table(written[ending])
    columns = Columns(label=file.default_label or "label", n_features=rows[0].shape[1], first_id=1)
    batches = list(file.batches(columns, rows=8))
    assert max(map(len, batches)) == 8
    starts = [0, *np.cumsum([len(batch) for batch in batches])[:-1].tolist()]
    assert [batch.first_row for batch in batches] == starts
    np.testing.assert_array_equal(np.vstack([dense(batch.X) for batch in batches]), rows[0])
    labels = [str(label) for batch in batches for label in batch.labels]
    assert labels == rows[1].astype(str).tolist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_features_only_labels_are_read(ending, written, rows):
    file = open_table(written[ending])
    table = file.read(Columns(label=file.default_label or "label", features=()))
    assert table.X.shape == (len(rows[0]), 0)
    assert len(table.labels) == len(rows[0])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_features_are_found_by_name_in_any_order(ending, written, rows):
    table = open_table(written[ending]).read(Columns(features=("x2", "x0")))
    np.testing.assert_array_equal(table.X, rows[0][:, [2, 0]])
    assert table.y is None


def test_labels_of_csv_files_are_text(file_of):
    table = file_of("code,x\n011,1\n7,2\nNA,3\n").read(Columns(label="code"))
    assert table.labels.tolist() == ["011", "7", "NA"]


def test_quotes_newlines_and_letters_of_any_script_survive(file_of):
    text = '\ufeffx,"naïve, label"\n1,"a ""b"",\nc"\n2,語\n'
    table = file_of(text).read(Columns(label="naïve, label"))
    assert table.labels.tolist() == ['a "b",\nc', "語"]
    assert table.X.tolist() == [[1.0], [2.0]]


def test_another_delimiter_can_be_said(file_of):
    assert file_of("a;y\n1;u\n", delimiter=";").read(Columns(label="y")).labels.tolist() == ["u"]


def test_the_format_can_be_said(file_of):
    table = file_of("a,y\n1,u\n", "table.dat", format="csv").read(Columns(label="y"))
    assert table.X.tolist() == [[1.0]]


def test_booleans_are_zeros_and_ones_and_whole_numbers_may_become_fractions(file_of):
    many = "true,1,u\n" * 3 + "false,0.5,v\n"
    table = file_of("flag,x,y\n" + many).read(Columns(label="y"))
    assert table.X.tolist() == [[1, 1], [1, 1], [1, 1], [0, 0.5]]


def test_weights_names_and_texts_come_with_the_rows(file_of):
    columns = Columns(label="y", weight="w", id="key", text=("words",), ignore=("junk",))
    table = file_of("key,w,x,words,junk,y\n01,2,5,hello there,z,u\n02,0.5,6,,z,v\n").read(columns)
    assert table.ids.tolist() == ["01", "02"]
    assert table.weight.tolist() == [2, 0.5]
    assert table.texts == {"words": ["hello there", ""]}
    assert table.names == ("x",)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([3, 1]), [3, 1]),
        (pa.array([3.0, 1.0]), [3, 1]),
        (pa.array(["b", "a"]), ["b", "a"]),
        (pa.array(["b", "a"]).dictionary_encode(), ["b", "a"]),
        (pa.array([True, False]), [True, False]),
        (pa.array([Decimal("3.00"), Decimal("1.00")]), [3, 1]),
        (pa.array([b"\xc3\xa9", b"a"]), ["é", "a"]),
        (pa.array([b"bb", b"aa"], pa.binary(2)), ["bb", "aa"]),
    ],
)
def test_labels_of_parquet_files_keep_their_type(labels, expected, tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"y": labels, "x": [1, 2]}), path)
    found = open_table(path).read(Columns(label="y")).labels.tolist()
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_bytes_in_archives_are_labels_of_text(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((2, 1)), y=np.array(["é".encode(), b"a"]))
    assert open_table(tmp_path / "t.npz").read(Columns(label="y")).labels.tolist() == ["é", "a"]


def test_rows_are_called_as_the_file_writes_it_though_they_are_features_too(file_of):
    table = file_of("x,y\n007,u\n,v\n12345678.50,w\n").read(
        Columns(label="y", features=("x",), id="x", allow_missing=True)
    )
    assert table.ids.tolist() == ["007", "", "12345678.50"]
    np.testing.assert_array_equal(table.X[:, 0], [7, np.nan, 12345678.5])


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([2**53 + 1, None]), [2**53 + 1, None]),
        (pa.array([1234567.25, None]), ["1234567.25", ""]),
        (pa.array(["007", None]), ["007", ""]),
        (pa.array([b"a", None]), ["a", ""]),
    ],
)
def test_rows_of_parquet_files_keep_what_they_are_called(ids, expected, tmp_path):
    pq.write_table(pa.table({"n": ids, "x": [1, 2]}), tmp_path / "t.parquet")
    batches = list(open_table(tmp_path / "t.parquet").batches(Columns(id="n"), rows=1))
    assert [name for batch in batches for name in batch.ids.tolist()] == expected
    assert Table.concatenate(batches).ids.tolist() == expected


def test_missing_values_are_read_only_where_they_are_allowed(file_of):
    file = file_of("x,y\n1,u\n,v\n")
    assert np.isnan(file.read(Columns(label="y", allow_missing=True)).X[1, 0])
    with pytest.raises(TableFileError, match=r"no value in the column 'x' of row 1 \(counted from 0\)"):
        file.read(Columns(label="y"))


@pytest.mark.parametrize(("text", "first", "width"), [("1 0:1 2:1\n", 0, 3), ("1 1:1 3:1\n", 1, 3)])
def test_svmlight_features_begin_at_zero_where_a_zero_occurs_and_else_at_one(text, first, width, file_of):
    table = file_of(text, "t.svm").read(Columns(label="label"))
    assert (table.first_id, table.X.shape[1]) == (first, width)
    np.testing.assert_array_equal(table.X.toarray(), [[1, 0, 1]])


def test_svmlight_can_have_more_features_than_occur(file_of):
    table = file_of("1 1:5\n", "t.svm").read(Columns(label="label", n_features=4, first_id=0))
    np.testing.assert_array_equal(table.X.toarray(), [[0, 5, 0, 0]])


@pytest.mark.parametrize(
    ("token", "label"), [("+1", 1), ("-1", -1), ("007", "007"), ("cat", "cat"), ("2.0", "2.0")]
)
def test_svmlight_labels_are_numbers_only_where_nothing_is_lost(token, label, file_of):
    table = file_of(f"# a comment\n\n{token}\tqid:3 1:0.5 # another\n", "t.svm").read(Columns(label="label"))
    assert table.labels.tolist() == [label]


def test_numbers_with_words_among_them_are_left_out_with_the_word(file_of):
    lines = [f"{i / 7:.3f},{i % 3},{'ab'[i % 2]}" for i in range(40)] + ["k.A.,1,a", "k.A.,2,b"]
    table = file_of("weight,size,y\n" + "\n".join(lines) + "\n")
    columns = table.with_roles(Columns(label="y"))
    assert columns.features == ("size",)
    assert "numbers, but for words such as 'k.A.'" in columns.found[0].remark


def test_gaps_of_parquet_columns_are_counted_as_those_of_csv(tmp_path):
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [np.nan] * 3, "c": [1, 2, 3], "y": ["u", "v", "w"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    of_csv, of_parquet = (
        open_table(tmp_path / name).with_roles(Columns(label="y")).found for name in ("t.csv", "t.parquet")
    )
    assert of_csv == of_parquet
    assert [tuple(each) for each in of_csv] == [
        ("a", "number", "missing in 1"),
        ("b", "left out", "no values"),
        ("c", "number", ""),
    ]
