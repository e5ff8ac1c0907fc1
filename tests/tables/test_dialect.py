"""Encoding, delimiter and decimal mark are found in the file, unless they are told."""

import gzip

import pytest

from dichotomies.tables import Columns, Dialect, open_table

ROWS = [["a", "1", "2"], ["b", "3", "4"], ["c", "5", "6"]]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_divides_all_rows_evenly(mark, tmp_path):
    header = mark.join(['"name, of; it"', "x", "y"])
    (tmp_path / "t.csv").write_text("\n".join([header, *(mark.join(row) for row in ROWS)]) + "\n")
    assert Dialect().found_in(tmp_path / "t.csv").delimiter == mark


def test_a_single_column_keeps_the_default(tmp_path):
    (tmp_path / "t.csv").write_text("text\nhello, you\nbye\nso; long\n")
    assert Dialect().found_in(tmp_path / "t.csv").delimiter == ","


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("x;y\n1,5;a\n", ","),
        ("x;y\n1.5;a\n1,5;b\n", "."),
        ('x,y\n"1,5",a\n', ","),
        ('x,y\n"1,234",a\n"12,000",b\n', "."),  # thousands
        ("x;y\n,5;a\n", ","),
        ("x;y\n1;a, b\n", "."),
    ],
)
def test_the_decimal_mark_is_a_comma_where_numbers_have_one_and_no_point(text, decimal, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    assert Dialect().found_in(tmp_path / "t.csv").decimal == decimal


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_text_of_any_usual_encoding_is_read(encoding, name, tmp_path):
    content = "größe,y\n1,Köln\n2,Ulm\n".encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table = open_table(tmp_path / name).read(Columns(label="y"))
    assert (table.names, table.labels.tolist()) == (("größe",), ["Köln", "Ulm"])


def test_what_is_told_is_not_looked_for(tmp_path):
    (tmp_path / "t.csv").write_bytes("x;y\n1;\u0416\n".encode("cp1251"))
    given = {"delimiter": ";", "encoding": "cp1251", "decimal": "."}
    table = open_table(tmp_path / "t.csv", **given).read(Columns(label="y"))
    assert table.labels.tolist() == ["\u0416"]
