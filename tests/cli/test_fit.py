"""What the command line fits is what the library fits."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import dichotomies
from dichotomies import NestedDichotomyClassifier
from dichotomies.cli.settings import summaries
from dichotomies.persistence import load
from tests.cli.conftest import fit, run, run_json, sentence, write_csv


def test_defaults_are_those_of_the_classifier(digit_files):
    reference = NestedDichotomyClassifier(LogisticRegression(C=0.01), random_state=0)
    reference.fit(digit_files.X_train, digit_files.y_train)
    model = load(digit_files.model)
    assert model.classes_.tolist() == reference.classes_.tolist()
    np.testing.assert_array_equal(
        model.classifier.predict_log_proba(digit_files.X_test),
        reference.predict_log_proba(digit_files.X_test),
    )
    assert str(model.classifier.get_params()) == str(reference.get_params())


def test_every_option_reaches_the_classifier(digit_files, tmp_path):
    options = "--structure class-balanced --internal platt --external none --cv 4 --calibrated-nodes 0,1 "
    options += "--calibration-size cross-fit --learner auto --seed 7 --jobs 2 --average-folds"
    fit(digit_files.train, tmp_path / "m", *options.split())
    fitted = load(tmp_path / "m").classifier.get_params(deep=False)
    expected = {"structure": "class-balanced", "internal_calibration": "platt", "external_calibration": None}
    expected |= {"cv": 4, "average_folds": True, "calibrated_nodes": [0, 1], "learner": "auto"}
    expected |= {"calibration_size": "cross-fit", "random_state": 7, "n_jobs": None, "verbose": 0}
    assert {name: fitted[name] for name in expected} == expected


@pytest.mark.parametrize("name", summaries())
def test_every_estimator_can_be_fitted_saved_and_asked(name, digit_files, tmp_path):
    fit(digit_files.test, tmp_path / "m", "--estimator", name)
    rows = run("predict", tmp_path / "m", digit_files.test, "-k", 1).stdout.splitlines()
    assert len(rows) == 1 + len(digit_files.X_test)


def test_naive_bayes_is_gaussian_for_dense_and_multinomial_for_sparse_data(digit_files, tmp_path):
    fit(digit_files.test, tmp_path / "m", "--estimator", "naive-bayes")
    assert isinstance(load(tmp_path / "m").classifier.estimator, GaussianNB)
    (tmp_path / "t.svm").write_text("1 1:3\n2 2:1\n" * 10)
    run("fit", tmp_path / "t.svm", "--estimator", "naive-bayes", "-o", tmp_path / "m", "--quiet")
    assert isinstance(load(tmp_path / "m").classifier.estimator, MultinomialNB)


def test_a_tree_can_be_given_as_a_file(tmp_path):
    data = write_csv(tmp_path / "t.csv", ["x", "y"], [(i, "ab7"[i % 3]) for i in range(30)])
    tree = tmp_path / "tree.json"
    tree.write_text(json.dumps([["a", 7], "b"]))
    fit(data, tmp_path / "m", "--structure", tree, label="y")
    assert load(tmp_path / "m").classifier.tree_.to_nested() == [["a", "7"], "b"]


def test_texts_are_learned_from(tmp_path):
    titles = {"software engineer": "011", "head nurse": "007", "data engineer": "011", "nurse": "007"}
    data = write_csv(tmp_path / "titles.csv", ["title", "code"], list(titles.items()) * 9)
    model = tmp_path / "titles.model"
    fit(data, model, "--text", "title", "--ngrams", "char", label="code")
    new = write_csv(tmp_path / "new.csv", ["nr", "title"], [("a", "engineering, senior"), ("b", "nurses")])
    lines = run("predict", model, new, "-k", 1, "--id", "nr").stdout.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == ["nr,label_1", "a,011", "b,007"]


def test_weights_count_rows(tmp_path):
    rows = [(i % 7, "abc"[i % 3], 1 + i % 2) for i in range(60)]
    weighted = write_csv(tmp_path / "w.csv", ["x", "y", "w"], rows)
    repeated = write_csv(tmp_path / "r.csv", ["x", "y"], [row[:2] for row in rows for _ in range(row[2])])
    common = ["--internal", "none", "--external", "none", "--estimator", "gaussian-nb"]
    fit(weighted, tmp_path / "w.model", *common, "--weight", "w", label="y")
    fit(repeated, tmp_path / "r.model", *common, label="y")
    X = np.arange(7.0)[:, None]
    models = [load(tmp_path / f"{name}.model").classifier.predict_proba(X) for name in "wr"]
    np.testing.assert_allclose(*models, rtol=1e-9)


def test_the_summary_says_what_was_fitted(digit_files, tmp_path):
    output = tmp_path / "m.model"
    summary = run_json("fit", digit_files.train, "--label", "digit", "-o", output)
    assert summary.pop("seconds") > 0
    assert "logistic" in summary.pop("learner")
    tree = load(output).classifier.tree_
    assert summary == {
        "model": str(output),
        "bytes": output.stat().st_size,
        "rows": 600,
        "features": 64,
        "classes": 10,
        "trees": 1,
        "depth": tree.max_depth,
        "nodes": 9,
        "different_nodes": 9,
    }
    said = run("fit", digit_files.train, "--label", "digit", "-o", output)
    assert "600 rows" in said.stdout
    assert "100%" in said.stderr


def test_show_tells_what_a_model_file_holds(digit_files):
    facts = run_json("show", digit_files.model)
    assert facts["labels"] == [f"0{digit}" for digit in range(10)]
    assert facts["label"] == "digit"
    assert facts["columns"] == [f"pixel_{i}" for i in range(64)]
    assert facts["written_by"]["dichotomies"] == dichotomies.__version__
    shown = run("show", digit_files.model, "--lines", 5).stdout
    assert "[0] 10 classes" in shown
    assert "C=0.01" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--estimator", "logitic"], "Did you mean 'logistic'?"),
        (["--param", "c=1"], "There is no logistic parameter 'c'; choose from C, "),
        (["--structure", "randm"], "Did you mean 'random'?"),
        (["--internal", "plat"], "Did you mean 'platt'?"),
        (["--external", "vectr"], "Did you mean 'vector'?"),
        (["--learner", "clone"], "Did you mean 'clones'?"),
        (["--param", "C"], "'C' should be NAME=VALUE"),
        (["--calibrated-nodes", "some"], "must be all, depths as in 0,1,2 or a share"),
        (["--structure", "nowhere.json"], "no file nowhere.json with a tree"),
    ],
)
def test_settings_that_do_not_exist_are_misunderstandings(arguments, said, digit_files, tmp_path):
    common = ["fit", digit_files.train, "--label", "digit", "-o", tmp_path / "m", "--quiet"]
    assert said in sentence(*common, *arguments, code=2)
    assert not (tmp_path / "m").exists()


def test_without_a_label_the_columns_are_listed(digit_files, tmp_path):
    result = run("fit", digit_files.train, "-o", tmp_path / "m", code=2)
    assert "digit, pixel_0" in " ".join(result.stderr.replace("│", " ").split())
