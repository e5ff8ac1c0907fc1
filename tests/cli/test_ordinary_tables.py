"""Files as people have them go through every command, and each column is read as what it is."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file, load_digits
from sklearn.preprocessing import OneHotEncoder

from dichotomies import NestedDichotomyClassifier
from dichotomies.persistence import load
from dichotomies.tables import Columns, open_table
from tests.cli.conftest import fit, run, run_json, sentence, write_csv
from tests.cli.ordinary_tables import KINDS, made
from tests.slow import slow

pytestmark = pytest.mark.filterwarnings("default:.* is left out:UserWarning")

FOUND = {
    "people": {"Größe": "number", "geboren": "date", "Stadt": "category", "aktiv": "number", "": "left out"},
    "tickets": {"ticket": "left out", "message": "text", "channel": "category", "hours": "number"},
    "sensors": {"at": "date", "value": "number", "alarm": "number", "unit": "category"}
    | {"__index_level_0__": "left out"},
    "parts": {"code": "category", "maker": "category", "weight": "number"},
}


@pytest.mark.parametrize("kind", FOUND)
def test_columns_are_read_as_what_they_are(kind, tmp_path):
    table = made(kind, tmp_path)
    found = open_table(table.train).with_roles(Columns(label=table.options[1])).found
    assert {each.column: each.role for each in found} == FOUND[kind]


@pytest.mark.parametrize("kind", [pytest.param("people"), *slow(*sorted(KINDS.keys() - {"people"}))])
def test_an_ordinary_file_goes_through_every_command(kind, tmp_path):
    table = made(kind, tmp_path)
    model = tmp_path / "m.model"
    summary = run_json("fit", table.train, *table.options, "-o", model, "--quiet")
    assert summary["rows"] in (400, 800)
    assert run_json("show", model)["classes"] == summary["classes"]
    predicted = run("predict", model, table.test, "-k", 1, "--quiet").stdout.splitlines()
    assert len(predicted) == 1 + summary["rows"]
    accuracy = run_json("evaluate", model, table.test, "--resamples", 1)["metrics"]["accuracy"]["estimate"]
    assert accuracy > 2 / summary["classes"]
    page = tmp_path / "r.html"
    assert run_json("report", model, table.test, "-o", page)["rows"] == summary["rows"]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    options = [each for each in table.options if each not in ("--estimator", "multinomial-nb")]
    compared = run_json("compare", table.train, *options, "--folds", 2, "-c", "one:", "--references", "none")
    assert compared["configurations"]["one"]["accuracy"]["mean"] > 2 / summary["classes"]


@pytest.mark.parametrize("kind", ["people", "tickets"])
def test_boosted_trees_need_no_other_option(kind, tmp_path):
    table = made(kind, tmp_path)
    label = table.options[:2]
    summary = run_json("fit", table.train, *label, "--estimator", "boosting", "-o", tmp_path / "m", "--quiet")
    metrics = run_json("evaluate", tmp_path / "m", table.test, "--resamples", 1)["metrics"]
    assert metrics["accuracy"]["estimate"] > 2 / summary["classes"]


def test_features_are_those_of_scikit_learns_encoders(tmp_path):
    rows = [(i % 5 or "", "abc"[i % 3], f"2024-01-{1 + i % 28:02d}", "uv"[i % 2]) for i in range(60)]
    data = write_csv(tmp_path / "t.csv", ["x", "c", "d", "y"], rows)
    fit(data, tmp_path / "m", label="y")
    model = load(tmp_path / "m")
    X = model.matrix(open_table(data).read(model.columns()))
    x = np.array([float(row[0] or "nan") for row in rows])
    np.testing.assert_allclose(X[:, 0], np.where(np.isnan(x), np.nanmedian(x), x) / np.nanstd(x))
    np.testing.assert_array_equal(X[:, 1], np.isnan(x))
    letters = OneHotEncoder(sparse_output=False).fit_transform([[row[1]] for row in rows])
    np.testing.assert_array_equal(X[:, 2:6], np.column_stack((letters, np.zeros(60))))
    days = np.array([row[2] for row in rows], dtype="datetime64[D]").astype(float)
    np.testing.assert_allclose(X[:, 6], (days - days.mean()) / days.std())


def test_roles_can_be_told_by_options_and_by_a_file(tmp_path):
    rows = [(i % 3, f"w{i % 4} and more", i, "uv"[i % 2]) for i in range(40)]
    data = write_csv(tmp_path / "t.csv", ["a", "b", "id", "y"], rows)
    (tmp_path / "c.toml").write_text('text = ["b"]\nnumeric = ["id"]\n')
    common = ["fit", data, "--label", "y", "-o", tmp_path / "m", "--categorical", "a"]
    said = run(*common, "--columns", tmp_path / "c.toml").stdout
    expected = ["numbers     id (as told)", "categories  a (as told)", "texts       b (as told)"]
    assert said.splitlines()[:3] == expected
    kinds = {each.column: type(each).__name__ for each in load(tmp_path / "m").encoders}
    assert kinds == {"a": "CategoryFeatures", "b": "TextFeatures"}
    said = sentence(*common, "--columns", tmp_path / "c.toml", "--categorical", "b")
    assert "named by --text and by --categorical" in said
    (tmp_path / "c.toml").write_text("texts = ['b']\n")
    assert "texts = ... is something else" in sentence(*common, "--columns", tmp_path / "c.toml", code=2)


def test_a_column_without_a_name_is_left_out_with_a_warning(tmp_path):
    data = write_csv(tmp_path / "t.csv", ["", "a", "c"], [(i, i % 7, "uv"[i % 2]) for i in range(40)])
    result = run("fit", data, "--label", "c", "-o", tmp_path / "m", "--quiet")
    assert "Warning: A column of" in result.stderr
    assert "has no name" in result.stderr
    assert load(tmp_path / "m").features == ("a",)


def test_new_categories_missing_values_and_other_columns_are_predicted_and_missing_columns_refused(tmp_path):
    rows = [(i % 5, "abc"[i % 3], "uvw"[i % 3]) for i in range(60)]
    data = write_csv(tmp_path / "t.csv", ["x", "c", "y"], rows)
    fit(data, tmp_path / "m", label="y")
    new = write_csv(tmp_path / "n.csv", ["z", "c", "x"], [(1, "new", 2), (1, "", ""), (1, "a", "?")])
    lines = run("predict", tmp_path / "m", new, "-k", 1, "--quiet").stdout.splitlines()
    assert len(lines) == 4
    assert lines[3].startswith("2,u,")
    less = write_csv(tmp_path / "l.csv", ["x"], [(1,)])
    assert "has no column 'c' that the model reads" in sentence("predict", tmp_path / "m", less)
    wrong = write_csv(tmp_path / "w.csv", ["x", "c"], [(1, "a"), ("two", "a")])
    assert "not a number (invalid value 'two') in line 3" in sentence("predict", tmp_path / "m", wrong)


@pytest.fixture
def saved_in_python(tmp_path):
    """A model that was fitted to arrays, and the same rows as svmlight with both numberings."""
    X, y = load_digits(return_X_y=True)
    X = csr_array(X[:, 1:])  # every id occurs
    NestedDichotomyClassifier(random_state=0).fit(X[:900], y[:900]).save(tmp_path / "m.model")
    for first in (0, 1):
        dump_svmlight_file(X[900:], y[900:], str(tmp_path / f"from{first}.svm"), zero_based=first == 0)
    return tmp_path


@pytest.mark.parametrize("command", ["evaluate", "predict", "report"])
def test_svmlight_ids_are_not_guessed_for_models_saved_in_python(command, saved_in_python):
    arguments = [command, saved_in_python / "m.model", saved_in_python / "from0.svm"]
    arguments += ["-o", saved_in_python / "out.csv"] if command != "evaluate" else []
    assert "say it: --first-id 0 or --first-id 1" in sentence(*arguments)


def test_svmlight_ids_can_be_told(saved_in_python):
    evaluate = ["evaluate", saved_in_python / "m.model"]
    files = [saved_in_python / f"from{first}.svm" for first in (0, 1)]
    found = [run_json(*evaluate, files[i], "--first-id", i, "--resamples", 1)["metrics"] for i in (0, 1)]
    assert found[0] == found[1]
    assert found[0]["accuracy"]["estimate"] > 0.85


def test_nothing_that_is_read_is_written_over(digit_files, tmp_path):
    data = tmp_path / "t.csv"
    data.write_bytes(digit_files.test.read_bytes())
    model = tmp_path / "m.model"
    model.write_bytes(digit_files.model.read_bytes())
    (tmp_path / "link.csv").symlink_to(data)
    for output in (data, tmp_path / "link.csv"):
        for command in (["fit", data, "--label", "digit"], ["predict", model, data], ["report", model, data]):
            assert "is read by this command" in sentence(*command, "-o", output, code=2)
    assert "is read by this command" in sentence("predict", model, data, "-o", model, code=2)
    assert data.read_bytes() == digit_files.test.read_bytes()


@pytest.mark.slow
def test_a_bad_file_is_an_exit_code_every_time(digit_files, tmp_path):
    data = write_csv(tmp_path / "t.csv", ["x"], [["1"]])
    code = (
        "import sys; from dichotomies.tables import Columns, open_table\n"
        f"try: list(open_table({str(data)!r}).batches(Columns(features=('z',), of_a_model=True)))\n"
        "except ValueError: sys.exit(1)\n"
    )
    for _ in range(15):
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 1


def test_pandas_gaps_in_whole_numbers_are_the_same_categories(tmp_path):
    whole = pa.table({"c": [1, 2, 3] * 10, "y": ["u", "v", "w"] * 10})
    pq.write_table(whole, tmp_path / "t.parquet")
    fit(tmp_path / "t.parquet", tmp_path / "m", "--categorical", "c", label="y")
    pq.write_table(pa.table({"c": [1.0, 2.0, None]}), tmp_path / "n.parquet")
    lines = run("predict", tmp_path / "m", tmp_path / "n.parquet", "-k", 1, "--quiet").stdout.splitlines()
    assert [line.split(",")[1] for line in lines[1:3]] == ["u", "v"]
