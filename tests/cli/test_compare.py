"""Configurations are compared on the same folds, by the library's metrics."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.naive_bayes import GaussianNB

from dichotomies import CalibratedClassifier
from dichotomies.cli.compare import configurations, folds_of
from dichotomies.cli.settings import Settings, as_dense, references
from dichotomies.metrics import evaluate
from dichotomies.tables import Table
from tests.cli.conftest import run, run_json, sentence, write_csv

ALONE = ["--references", "none"]
FEW = ["--folds", 2, *ALONE]
TWO = ["nb: estimator=gaussian-nb external=none", "iso: estimator=gaussian-nb internal=isotonic"]
CONFIGS = [*ALONE, "--config", TWO[0], "--config", TWO[1]]


@pytest.fixture(scope="module")
def compared(digit_files):
    return run_json("compare", digit_files.test, "--label", "digit", "--folds", 3, *CONFIGS)


def test_every_configuration_is_measured_on_the_same_folds(digit_files, compared):
    folds = folds_of(digit_files.y_test, 3, seed=0)
    for name, settings in configurations(TWO).items():
        expected = []
        for fold in range(3):
            train, test = folds != fold, folds == fold
            clf = settings.classifier(Table(digit_files.X_test, digit_files.y_test))
            clf.fit(digit_files.X_test[train], digit_files.y_test[train])
            found = evaluate(clf, digit_files.X_test[test], digit_files.y_test[test])
            expected.append(found.metrics["nll"])
        nll = compared["configurations"][name]["nll"]
        assert nll["folds"] == pytest.approx(expected, rel=1e-9)
        assert nll["mean"] == pytest.approx(np.mean(expected))
        assert nll["sd"] == pytest.approx(np.std(expected, ddof=1))


def test_the_table_has_a_line_for_every_configuration(digit_files, compared):
    result = run("compare", digit_files.test, "--label", "digit", "--folds", 3, *CONFIGS)
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["nb", "iso"]
    assert f"{compared['configurations']['iso']['nll']['mean']:.4f}" in lines[3]
    assert "100%" in result.stderr


def test_no_row_is_tested_by_a_model_that_never_saw_its_class():
    labels = np.array(["a"] * 7 + ["b"] * 2 + ["c"])
    folds = folds_of(labels, 3, seed=0)
    assert folds[-1] == -1
    for fold in range(3):
        assert set(labels[folds == fold]) <= set(labels[folds != fold])


def test_rows_that_are_never_tested_are_counted(tmp_path):
    rows = [(i, "ab"[i % 2]) for i in range(40)] + [(99, "c")]
    data = write_csv(tmp_path / "t.csv", ["x", "y"], rows)
    document = run_json("compare", data, "--label", "y", "-c", "one: external=none", *FEW)
    assert document["rows_never_tested"] == 1
    assert "1 row never tested" in run("compare", data, "--label", "y", "-c", "one:", *FEW).stdout


def test_folds_are_dealt_among_the_rows_that_can_be_tested(tmp_path):
    labels = [*"aabb", *(f"single {i}" for i in range(6))]
    folds = folds_of(np.array(labels), 5, seed=0)
    assert sorted(folds[:4].tolist()) == [0, 1, 2, 3]
    assert set(folds[4:].tolist()) == {-1}
    data = write_csv(tmp_path / "t.csv", ["x", "y"], list(enumerate(labels)))
    arguments = ["compare", data, "--label", "y", "-c", "one: external=none", *ALONE]
    document = run_json(*arguments)
    assert (document["folds"], document["rows_never_tested"]) == (4, 6)
    assert len(document["configurations"]["one"]["nll"]["folds"]) == 4
    assert "Warning" not in run(*arguments).stderr


def test_without_a_label_of_two_rows_nothing_is_compared(tmp_path):
    data = write_csv(tmp_path / "t.csv", ["x", "y"], list(enumerate("abc")))
    assert "No label has two rows" in sentence("compare", data, "--label", "y", "-c", "one:")


def test_texts_are_learned_anew_in_every_fold(tmp_path):
    rows = [("it", f"engineer {i}") if i % 2 else ("care", f"nurse {i}") for i in range(40)]
    data = write_csv(tmp_path / "t.csv", ["code", "title"], rows)
    options = ["--label", "code", "--text", "title", *FEW]
    document = run_json("compare", data, *options, "-c", "nb: estimator=naive-bayes")
    assert document["configurations"]["nb"]["accuracy"]["mean"] == 1


def test_configurations_may_be_in_a_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(
        '[plain]\nexternal = "none"\n["two words"]\nparam.C = 10\ncalibration-size = "cross-fit"\n'
    )
    found = configurations([str(path)])
    assert found["plain"] == Settings(values={"external": "none"})
    assert found["two words"] == Settings(param={"C": 10}, values={"calibration_size": "cross-fit"})


def test_settings_are_read_as_numbers_truths_and_texts():
    params = "param.C=0.5 param.fit_intercept=false param.class_weight=balanced"
    assert configurations([f"all: {params} average_folds=true cv=4 internal=none"])["all"] == Settings(
        param={"C": 0.5, "fit_intercept": False, "class_weight": "balanced"},
        values={"average_folds": True, "cv": 4, "internal": "none"},
    )


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("no colon", "should be 'NAME: SETTING=VALUE ...' or a .toml file"),
        ("a: structur=random", "no setting 'structur'; choose from estimator, param"),
        ("a: param=3", "no setting 'param'; choose from"),
        ("a: cv=three", "'cv' must be a whole number, got 'three'"),
        ("a: estimator=svm", "no estimator 'svm'"),
        ("a: random", "'random' should be NAME=VALUE"),
        ("a: structure='random", "cannot be divided into settings (No closing quotation)"),
        ("a: param.c=1", "no logistic parameter 'c'; choose from C, "),
        ("nowhere.toml", "no file nowhere.toml"),
        ("a: trees=0", "There must be one tree or more, got trees=0."),
        ("a: trees=many", "'trees' must be a whole number, got 'many'"),
        ("a: trees=2 pooling=3", "'pooling' must be a name, got 3"),
        ("a: trees=2 pooling=geometrc", "no pooling 'geometrc'; choose from geometric, arithmetic. Did you"),
    ],
)
def test_configurations_that_are_not_understood_are_said_to_be_so(config, said, digit_files):
    arguments = ["compare", digit_files.test, "--label", "digit", "--config", config]
    assert said in sentence(*arguments, code=2)


def test_a_configuration_that_fails_is_said_to_and_the_others_go_on(tmp_path):
    rows = [(i % 5 - 2, "ab"[i % 2]) for i in range(40)]
    data = write_csv(tmp_path / "t.csv", ["x", "y"], rows)
    arguments = ["compare", data, "--label", "y", *FEW, "-c", "nb: estimator=multinomial-nb", "-c", "one:"]
    lines = run(*arguments).stdout.splitlines()
    assert lines[2].startswith("nb   failed: Negative values in data")
    assert lines[3].startswith("one  0.")
    found = run_json(*arguments)["configurations"]
    assert "Negative values" in found["nb"]["failed"]
    assert found["one"]["nll"]["mean"] > 0
    alone = run(*arguments[:-2], code=1).stdout.splitlines()
    assert alone[2].split() == lines[2].split()


def test_references_are_calibrated_flat_classifiers(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(*rng.normal(i % 3, size=2).round(3).tolist(), "abc"[i % 3]) for i in range(60)]
    data = write_csv(tmp_path / "t.csv", ["u", "v", "y"], rows)
    found = run_json("compare", data, "--label", "y", "--folds", 2)["configurations"]
    flat = ["flat logistic regression", "flat naive Bayes", "flat HistGradientBoosting"]
    assert list(found)[:5] == ["one tree", "ten trees", *flat]
    table, y = np.array([row[:2] for row in rows]), np.array([row[2] for row in rows])
    folds = folds_of(y, 2, seed=0)
    flat = CalibratedClassifier(GaussianNB(), "auto")
    expected = [
        evaluate(flat.fit(table[folds != f], y[folds != f]), table[folds == f], y[folds == f]).metrics["nll"]
        for f in range(2)
    ]
    assert found["flat naive Bayes"]["nll"]["folds"] == pytest.approx(expected, rel=1e-6)


def test_references_take_texts_beside_numbers_and_dates(tmp_path):
    words, data = ["red fox", "grey wolf", "brown bear"], tmp_path / "animals.csv"
    lines = [f"{words[i % 3]} number {i},{i % 7 - 3},200{i % 9}-01-0{i % 9 + 1},{i % 3}" for i in range(120)]
    data.write_text("text,number,day,y\n" + "\n".join(lines) + "\n")
    options = ["--label", "y", "--text", "text", "-c", "nb: estimator=logistic", "--folds", 2]
    found = run_json("compare", data, *options)["configurations"]
    flat = {name: each for name, each in found.items() if name.startswith("flat")}
    assert len(flat) >= 3
    assert all(np.isfinite(each["nll"]["mean"]) for each in flat.values())
    with pytest.raises(ValueError, match="as an array"):
        as_dense(csr_array((2**20, 2**10)))


def test_slow_references_are_left_out_if_there_are_many_classes():
    assert "flat HistGradientBoosting" in references("auto", 100)
    assert list(references("auto", 101)) == ["flat logistic regression", "flat naive Bayes"]
    assert "flat HistGradientBoosting" in references("all", 101)
    assert references("none", 3) == {}
