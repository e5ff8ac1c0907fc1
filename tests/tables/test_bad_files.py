"""A file that cannot be read is refused in a sentence that names the file, the place and the remedy."""

import gzip
import zipfile
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.lib import format as npy

from dichotomies.tables import Columns, TableFileError, open_table

GOOD = "x,z,y\n1,2,u\n3,4,v\n"

CSR = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 3], "y": [1]}

BAD_TEXTS = {
    "empty": ("t.csv", b"", "t.csv is empty; its first line should hold the names"),
    "header only": ("t.csv", b"x,y\n", "has no rows"),
    "no label column": (
        "t.csv",
        b"x,z,yy\n1,2,u\n",
        "no column 'y' .--label.; its columns are x, z, yy. Did",
    ),
    "same name twice": ("t.csv", b"x,x,y\n1,2,u\n", "several columns of the same name: 'x'"),
    "too few values": ("t.csv", b"x,z,y\n1,2,u\n3\n", "1 values in line 3 .* has 3 columns"),
    "words": ("t.csv", b"x,z,y\n1,a,u\n", "a column that is not numeric: 'z'. Read it as text .--text 'z'."),
    "words in two": ("t.csv", b"x,z,y\na,a,u\n", "columns that are not numeric: 'x', 'z'"),
    "no label": ("t.csv", b"x,y\n1,u\n2,\n", "no label in row 1 .counted from 0, column 'y'."),
    "not UTF-8": (
        "t.csv",
        b"x,y\n" + b"1,u\n" * 300_000 + b"1,\xff\n",  # beyond the beginning that the encoding is found in
        "not UTF-8 text in line 300002 .*, in the column 'y'; say what it is .--encoding latin-1.",
    ),
    "unclosed quotation": ("t.csv", b'x,y\n1,"u' + b"u\n" * 2**24, "line of more than .* .--max-line."),
    "infinite": ("t.csv", b"x,y\n1,u\ninf,v\n", "has inf in the column 'x' of row 1"),
    "nothing to learn from": ("t.csv", b"y\nu\n", "no column left to learn from"),
    "broken gzip": ("t.csv.gz", gzip.compress(GOOD.encode())[:20], "t.csv.gz"),
    "not gzip": ("t.csv.gz", b"x,y\n1,2\n", "t.csv.gz could not be read as CSV"),
    "not Parquet": ("t.parquet", b"hello", "t.parquet could not be read as Parquet"),
    "unknown ending": ("t.xls", b"hello", "does not say what its format is: it should end in .csv"),
    "svmlight word": ("t.svm", b"1 1:2\n2 1:2 oops\n", "'oops' where feature:value should be in line 2"),
    "svmlight value": ("t.svm", b"1 1:2\n\n2 1:a\n", "values that are not numbers in line 3"),
    "svmlight order": ("t.svm", b"1 2:1 1:1\n", "not in ascending order, or values that .* in line 1"),
    "svmlight labels": ("t.svm", b"1,3 2:1\n", "several labels in line 1"),
    "svmlight no label": ("t.svm", b"2:1\n", "no label in line 1"),
    "svmlight no features": ("t.svm", b"1\n2\n", "has no features"),
    "svmlight NaN": ("t.svm", b"1 1:1\n2 1:1 2:nan\n", "no value in feature 2 of row 1"),
    "svmlight huge line": ("t.svm.gz", gzip.compress(b"1 " * 2**24), "line of more than .* .--max-line."),
    "svmlight huge id": ("t.svm", b"1 100000000:1\n", "has 100,000,000 features.* .--n-features 100000000."),
    "svmlight impossible id": ("t.svm", b"1 3000000000:1\n", "a feature 3000000000, where .* in line 1"),
    "svmlight gzip": ("t.svm.gz", gzip.compress(b"1 1:2\n" * 9)[:-9], "t.svm.gz is damaged"),
    "not NPZ": ("t.npz", b"hello", "t.npz is damaged or not a NPZ file"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_a_bad_file_is_refused_in_a_sentence(name, tmp_path):
    file_name, content, sentence = BAD_TEXTS[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    with pytest.raises(TableFileError, match=sentence) as refusal:
        open_table(path).read(Columns(label="y"))
    assert str(refusal.value).endswith((".", "?"))
    assert "\n" not in str(refusal.value)


def test_a_word_far_down_in_a_column_of_numbers_is_refused_by_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,u\n" * 5_000_000 + "many,u\n")  # beyond what types are guessed from
    said = r"not a number \(invalid value 'many'\) in line 5000002 .*, in the column 'x'"
    with pytest.raises(TableFileError, match=said):
        list(open_table(path).batches(Columns(label="y")))


def test_a_truncated_parquet_file_is_refused(written, tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(written["parquet"].read_bytes()[:-20])
    with pytest.raises(TableFileError, match="could not be read as Parquet"):
        open_table(path).read(Columns(label="label"))


def test_a_truncated_archive_is_refused(written, tmp_path):
    path = tmp_path / "t.npz"
    path.write_bytes(written["npz"].read_bytes()[:-300])
    with pytest.raises(TableFileError, match="damaged or not a NPZ file"):
        open_table(path).read(Columns(label="y"))


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": np.ones((2, 2)), "y": np.array([1, None], dtype=object)}, "pickled objects in 'y'"),
        ({"X": np.array([[1], [None]], dtype=object), "y": [1, 2]}, "pickled objects in 'X'"),
        ({"X": np.ones((2, 2)), "y": [1, 2, 3]}, "2 rows, but 3 labels"),
        ({"X": np.ones(2), "y": [1, 2]}, r"an X of shape \(2,\)"),
        ({"X": np.ones((2, 2)), "y": [0.5, 1]}, "the label 0.5 in 'y'; labels must be text or whole"),
        ({"X": np.ones((2, 2)), "Y": [1, 2]}, "no array 'y' of labels; its arrays are X, Y"),
        ({"Z": np.ones((2, 2)), "y": [1, 2]}, "holds the arrays Z, y; it should hold X, or data, indices"),
        ({**CSR, "indices": [5]}, "no CSR matrix: .*indices must be < 3"),
        ({**CSR, "indptr": [1, 0]}, "no CSR matrix: index pointer should start with 0"),
        ({**CSR, "indices": np.array([2**32])}, "no CSR matrix: .*indices must be < 3"),
        ({**CSR, "shape": [1, 2**40]}, "would have 1,099,511,627,776 features"),
        ({**CSR, "shape": [1, 2**30]}, r"has 1,073,741,824 features.*\(--n-features 1073741824\)"),
        ({**CSR, "shape": [2**40, 3]}, "no CSR matrix: index pointer size"),
        ({**CSR, "data": ["1.0"]}, "'data' of shape .1,. and type <U3, which is no part of a CSR matrix"),
        ({**CSR, "shape": 3}, r"'shape' of shape \(\) and type int64"),
        ({**CSR, "format": b"csc"}, r"is a csc matrix; save it as CSR: \.tocsr\(\)"),
        ({"X": np.ones((1, 1)), "y": [np.inf]}, "the label inf in 'y'"),
        ({"X": np.ones((1, 1)), "y": [b"\xff"]}, "labels in 'y' that are not UTF-8"),
    ],
)
def test_arrays_that_are_no_table_are_refused(arrays, sentence, tmp_path):
    np.savez(tmp_path / "t.npz", allow_pickle=True, **arrays)
    with pytest.raises(TableFileError, match=sentence):
        open_table(tmp_path / "t.npz").read(Columns(label="y"))


def test_an_array_that_says_to_be_larger_than_it_is_is_refused(tmp_path):
    header = BytesIO()
    npy.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (4, 2**40)})
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(64))
    with pytest.raises(TableFileError, match=r"needs more memory than there is|is damaged"):
        open_table(tmp_path / "t.npz").read(Columns())


def test_an_archive_of_an_unknown_version_is_refused(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.eye(3), y=np.arange(3))
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 6] = 212  # the version needed to extract
    path.write_bytes(data)
    with pytest.raises(TableFileError, match="is damaged or not a NPZ file"):
        open_table(path).read(Columns())


def test_texts_that_are_not_utf8_are_refused_in_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"b": ["harmless", "z"], "y": ["u", "v"]}), path, compression="none", use_dictionary=False
    )
    path.write_bytes(path.read_bytes().replace(b"harmless", b"harm\xffess"))
    with pytest.raises(TableFileError, match=r"could not be read as Parquet: .*UTF8"):
        open_table(path).with_roles(Columns(label="y"))


def test_decimal_commas_are_named_by_row_column_and_cure(tmp_path):
    (tmp_path / "t.csv").write_text("x;z;y\n1.5;2;u\n1,5;2;v\n")
    with pytest.raises(TableFileError, match=r"line 3 .* in the column 'x'; .*\(--decimal ,\)"):
        open_table(tmp_path / "t.csv").read(Columns(label="y", features=("x", "z")))


@pytest.mark.parametrize("number", ["1.234,5", "1,234.5", "1,234,567", "1 234", "1'234.0"])
def test_separators_of_thousands_are_named(number, tmp_path):
    (tmp_path / "t.csv").write_text(f"x;y\n1;u\n{number};v\n")
    with pytest.raises(TableFileError, match=r"line 3 .* in the column 'x'; .* no separators of thousands"):
        open_table(tmp_path / "t.csv").read(Columns(label="y", features=("x",)))


def test_an_unknown_encoding_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    with pytest.raises(TableFileError, match=r"no encoding 'latin-99'.*latin-1, cp1252 and utf-16"):
        open_table(tmp_path / "t.csv", encoding="latin-99").read(Columns(label="y"))


@pytest.mark.parametrize("labels", [[1.0, np.inf], [1.0, 2.0**54], [1.0, 1.5]])
def test_floats_that_are_no_whole_numbers_are_no_labels(labels, tmp_path):
    pq.write_table(pa.table({"x": [1, 2], "y": labels}), tmp_path / "t.parquet")
    with pytest.raises(TableFileError, match=f"the label {labels[1]:g} in 'y'".replace("+", "[+]")):
        open_table(tmp_path / "t.parquet").read(Columns(label="y"))


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (Columns(label="y", text=("y",)), "--text and by --label"),
        (Columns(label="y", weight="y"), "--label and by --weight"),
        (Columns(label="y", ignore=("y",)), "--ignore and by --label"),
        (Columns(label="y", text=("x",), ignore=("x",)), "--text and by --ignore"),
    ],
)
def test_a_column_in_two_roles_is_refused_by_both(columns, options, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    with pytest.raises(TableFileError, match=f"is named by {options}; it can be one of them only"):
        open_table(tmp_path / "t.csv").read(columns)


def test_nothing_is_advised_that_a_model_cannot_do(tmp_path):
    texts = ["x,z\n1,\n", "x,z\n1,a\n", "x,z\n" + "1,1\n" * 5_000_000 + "1,a\n"]
    for text in texts:
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(TableFileError) as refusal:
            open_table(tmp_path / "t.csv").read(Columns(features=("x", "z"), of_a_model=True))
        assert "--" not in str(refusal.value)


@pytest.mark.parametrize("ending", ["svm", "npz"])
def test_files_without_named_columns_have_no_texts(ending, written):
    with pytest.raises(TableFileError, match="whose features have no names"):
        open_table(written[ending]).read(Columns(label="y", text=("title",)))


@pytest.mark.parametrize("how", ["read", "batches"])
def test_svmlight_ids_that_a_model_cannot_know_are_refused(how, written):
    columns = Columns(n_features=4, of_a_model=True)
    with pytest.raises(TableFileError, match="numbered from 0 or from 1; say it: --first-id 0"):
        list(getattr(open_table(written["svm"]), how)(columns))


def test_svmlight_features_beyond_the_known_ones_are_refused_by_line(written):
    columns = Columns(n_features=3, first_id=1)
    with pytest.raises(TableFileError, match="a feature 4 in line 1, but they should be 1 to 3"):
        list(open_table(written["svm"]).batches(columns))


def test_wanted_columns_that_are_not_there_are_named(written):
    with pytest.raises(TableFileError, match=r"lacks 2 of the 3 columns .* 'a', 'b'"):
        open_table(written["csv"]).read(Columns(features=("x0", "a", "b")))


def test_negative_weights_are_refused_by_row(tmp_path):
    (tmp_path / "t.csv").write_text("x,w,y\n1,1,u\n1,-2,v\n")
    with pytest.raises(TableFileError, match="the weight -2 in row 1"):
        open_table(tmp_path / "t.csv").read(Columns(label="y", weight="w"))


def test_missing_files_and_folders_are_said_to_be_so(tmp_path):
    with pytest.raises(TableFileError, match="There is no file"):
        open_table(tmp_path / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    for folder in (tmp_path, tmp_path / "folder.csv"):
        with pytest.raises(TableFileError, match=f"{folder.name} is a folder"):
            open_table(folder)


def test_an_unknown_format_is_refused_with_the_nearest(written):
    with pytest.raises(TableFileError, match="Did you mean 'parquet'"):
        open_table(written["csv"], format="parket")
