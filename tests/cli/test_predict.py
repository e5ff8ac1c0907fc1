"""Predictions are those of the model, for any file that has its columns, a batch at a time."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import RandomForestClassifier

from dichotomies import NestedDichotomyClassifier
from dichotomies.cli import predict as command
from dichotomies.persistence import load
from dichotomies.tables import TableModel
from tests.cli.conftest import NAMES, fit, run, run_json, sentence, write_csv


def table_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def reference(digit_files):
    """Labels, best first, and their probabilities."""
    model = load(digit_files.model)
    proba = model.classifier.predict_proba(digit_files.X_test)
    order = np.argsort(-proba, axis=1, kind="stable")
    return model.classes_[order], np.take_along_axis(proba, order, axis=1)


def test_the_best_labels_come_first_with_their_probabilities(digit_files, reference):
    rows = table_of(run("predict", digit_files.model, digit_files.test, "--top-k", 3).stdout)
    assert list(rows[0]) == ["row", *(f"{what}_{k}" for k in (1, 2, 3) for what in ("label", "probability"))]
    labels, proba = reference
    assert [row["row"] for row in rows] == [str(i) for i in range(300)]
    for k in range(3):
        assert [row[f"label_{k + 1}"] for row in rows] == labels[:, k].tolist()
        found = [float(row[f"probability_{k + 1}"]) for row in rows]
        np.testing.assert_allclose(found, proba[:, k], rtol=1e-5)


def test_parquet_files_hold_the_probabilities_to_the_last_digit(digit_files, reference, tmp_path):
    output = tmp_path / "p.parquet"
    summary = run_json("predict", digit_files.model, digit_files.test, "-o", output)
    assert (summary["rows"], summary["output"]) == (300, str(output))
    table = pq.read_table(output).to_pydict()
    assert len(table) == 1 + 2 * 5
    assert table["label_5"] == reference[0][:, 4].tolist()
    np.testing.assert_allclose(table["probability_5"], reference[1][:, 4], rtol=1e-12)


def test_columns_may_come_in_any_order_with_others_between_and_no_label(digit_files, tmp_path):
    X = digit_files.X_test.astype(int)
    rows = ([f"n{i}", *row[::-1], "junk"] for i, row in enumerate(X.tolist()))
    shuffled = write_csv(tmp_path / "s.csv", ["key", *NAMES[::-1], "other"], rows)
    expected = table_of(run("predict", digit_files.model, digit_files.test).stdout)
    found = table_of(run("predict", digit_files.model, shuffled, "--id", "key").stdout)
    assert [row.pop("key") for row in found] == [f"n{row.pop('row')}" for row in expected]
    assert found == expected


def test_no_batch_is_larger_than_allowed_and_their_size_changes_nothing(digit_files, monkeypatch):
    whole = run("predict", digit_files.model, digit_files.test).stdout
    sizes = []
    predicted = command.predictions

    def watched(model, batches, *rest):
        return predicted(model, (sizes.append(len(batch)) or batch for batch in batches), *rest)

    monkeypatch.setattr(command, "predictions", watched)
    monkeypatch.setattr(command, "batch_rows", lambda n_classes: 64)
    assert run("predict", digit_files.model, digit_files.test).stdout == whole
    assert sizes == [64, 64, 64, 64, 44]


def test_labels_that_are_not_probable_enough_are_left_out(digit_files, reference):
    options = ["-k", 2, "--min-probability", 0.6]
    rows = table_of(run("predict", digit_files.model, digit_files.test, *options).stdout)
    given = [row["label_1"] != "" for row in rows]
    assert given == (reference[1][:, 0] >= 0.6).tolist()
    assert {row["probability_2"] for row in rows} == {""}


def test_all_gives_the_whole_distribution(digit_files):
    rows = table_of(run("predict", digit_files.model, digit_files.test, "--all").stdout)
    assert list(rows[0]) == ["row", *(f"0{digit}" for digit in range(10))]
    for row in rows:
        assert sum(float(row[f"0{digit}"]) for digit in range(10)) == pytest.approx(1, abs=1e-4)


def test_all_refuses_a_name_that_a_label_has(digit_files, tmp_path):
    rows = ([i, *row] for i, row in enumerate(digit_files.X_test.astype(int).tolist()))
    data = write_csv(tmp_path / "t.csv", ["07", *NAMES], rows)
    assert "There is a label '07'" in sentence("predict", digit_files.model, data, "--all", "--id", "07")


def test_no_column_of_predictions_is_overwritten_by_what_rows_are_called(digit_files, tmp_path):
    rows = [[i, *row] for i, row in enumerate(digit_files.X_test[:3].astype(int).tolist())]
    data = write_csv(tmp_path / "t.csv", ["label_2", *NAMES], rows)
    said = sentence("predict", digit_files.model, data, "--id", "label_2")
    assert "The predictions have a column 'label_2' themselves" in said
    found = table_of(run("predict", digit_files.model, data, "--id", "label_2", "-k", 1).stdout)
    assert [row["label_2"] for row in found] == ["0", "1", "2"]


def test_a_label_that_is_called_as_row_numbers_are_needs_an_id(tmp_path):
    data = write_csv(tmp_path / "t.csv", ["x", "y"], [(i, ["row", "column"][i % 2]) for i in range(40)])
    fit(data, tmp_path / "m", label="y")
    said = sentence("predict", tmp_path / "m", data, "--all")
    assert "There is a label 'row'" in said
    assert "(--id)" in said
    run("predict", tmp_path / "m", data, "--all", "--id", "x")


def test_whole_numbers_that_name_rows_keep_all_digits(digit_files, tmp_path):
    columns = {"n": pa.array([2**53 + 1, None, 3])}
    columns |= {name: digit_files.X_test[:3, i] for i, name in enumerate(NAMES)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    command = ["predict", digit_files.model, tmp_path / "t.parquet", "--id", "n"]
    assert [row["n"] for row in table_of(run(*command).stdout)] == [str(2**53 + 1), "", "3"]
    run(*command, "-o", tmp_path / "p.parquet", "--quiet")
    assert pq.read_table(tmp_path / "p.parquet")["n"].to_pylist() == [2**53 + 1, None, 3]


def test_types_that_a_model_needs_are_trusted_by_option(digit_files, tmp_path):
    clf = NestedDichotomyClassifier(RandomForestClassifier(2, max_depth=2, random_state=0), random_state=0)
    clf.fit(digit_files.X_train[:100], digit_files.y_train[:100])
    TableModel(clf, tuple(NAMES)).save(tmp_path / "m")
    kinds = "ensemble._forest.RandomForestClassifier tree._classes.DecisionTreeClassifier tree._tree.Tree"
    trust = [word for kind in kinds.split() for word in ("--trust", f"sklearn.{kind}")]
    data = digit_files.test
    for name, *words in (["predict", data], ["evaluate", data, "--label", "digit"], ["show"]):
        assert " ".join(trust) in sentence(name, tmp_path / "m", *words)
        run(name, tmp_path / "m", *words, *trust)


def test_more_labels_than_there_are_is_all_of_them(digit_files):
    rows = table_of(run("predict", digit_files.model, digit_files.test, "-k", 99).stdout)
    assert len(rows[0]) == 1 + 2 * 10


def test_missing_columns_are_named(digit_files, tmp_path):
    data = write_csv(tmp_path / "t.csv", NAMES[2:], [[0] * 62])
    said = sentence("predict", digit_files.model, data)
    assert "lacks 2 of the 64 columns that the model was fitted with: 'pixel_0', 'pixel_1'" in said


def test_a_file_that_goes_wrong_half_way_leaves_no_output(digit_files, tmp_path):
    data = write_csv(tmp_path / "t.csv", NAMES, [[0] * 64, [0] * 63 + ["inf"]])
    said = sentence("predict", digit_files.model, data, "-o", tmp_path / "p.csv")
    assert "has inf in the column 'pixel_63' of row 1" in said
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_what_is_no_model_is_refused(digit_files, tmp_path):
    assert "train.csv is not a model file" in sentence("predict", digit_files.train, digit_files.test)
    assert "There is no file" in sentence("predict", tmp_path / "no.model", digit_files.test)
    damaged = tmp_path / "damaged.model"
    damaged.write_bytes(digit_files.model.read_bytes()[:-100])
    assert "damaged.model is truncated" in sentence("predict", damaged, digit_files.test)


@pytest.fixture(scope="module")
def model_with_sets(digit_files, tmp_path_factory):
    output = tmp_path_factory.mktemp("sets") / "sets.model"
    fit(digit_files.train, output, "--sets", 2)
    return output


def test_sets_are_those_of_the_classifier(digit_files, model_with_sets):
    rows = table_of(run("predict", model_with_sets, digit_files.test, "--coverage", 0.95).stdout)
    expected = load(model_with_sets).classifier.predict_set(digit_files.X_test, 0.95)
    assert list(rows[0]) == ["row", "size", "labels"]
    assert [row["labels"].split(" | ") for row in rows] == [list(map(str, labels)) for labels in expected]
    assert [int(row["size"]) for row in rows] == [len(labels) for labels in expected]


def test_answers_are_as_deep_as_the_confidence_allows(digit_files):
    rows = table_of(run("predict", digit_files.model, digit_files.test, "--min-confidence", 0.9).stdout)
    expected = load(digit_files.model).classifier.predict_node(digit_files.X_test, 0.9)
    assert list(rows[0]) == ["row", "answer", "probability", "size"]
    assert [row["answer"] for row in rows] == expected.names
    assert [int(row["size"]) for row in rows] == expected.size.tolist()
    assert min(float(row["probability"]) for row in rows) >= 0.9 - 1e-5


def test_groups_are_those_of_the_classifier(digit_files, model_with_sets):
    classifier = load(model_with_sets).classifier
    for option, name in (("--coverage", "coverage"), ("--min-confidence", "confidence")):
        given = (option, 0.95, "--groups", 2)
        rows = table_of(run("predict", model_with_sets, digit_files.test, *given).stdout)
        expected = classifier.predict_node(digit_files.X_test, **{name: 0.95}, groups=2)
        assert [row["answer"] for row in rows] == expected.names


def test_sets_need_a_model_that_is_prepared_for_them(digit_files):
    assert "calibrate_sets" in sentence("predict", digit_files.model, digit_files.test, "--coverage", 0.9)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--json"], "--output"),
        (["--coverage", 0.9, "--min-confidence", 0.5], "one of --all"),
        (["--groups", 2], "--coverage or --min-confidence"),
    ],
)
def test_options_that_exclude_or_need_each_other_are_misunderstandings(options, said, digit_files):
    result = run("predict", digit_files.model, digit_files.test, *options, code=2)
    assert said in result.stderr
    assert result.stdout == ""
