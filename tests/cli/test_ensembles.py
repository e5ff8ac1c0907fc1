"""Several trees are the library's ensemble in every command; what only ensembles have needs several."""

import csv
import io

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyEnsemble
from dichotomies.cli.compare import configurations, folds_of
from dichotomies.cli.settings import Settings
from dichotomies.inference.pooling import POOLINGS
from dichotomies.metrics import evaluate
from dichotomies.persistence import load
from tests.cli.conftest import fit, run, run_json, sentence


@pytest.fixture(scope="module")
def reference(digit_files):
    clf = NestedDichotomyEnsemble(LogisticRegression(C=0.01), n_estimators=3, random_state=0)
    return clf.fit(digit_files.X_train, digit_files.y_train)


@pytest.fixture(scope="module")
def pool(digit_files, tmp_path_factory):
    """A model file of three trees."""
    path = tmp_path_factory.mktemp("pool") / "pool.model"
    fit(digit_files.train, path, "--param", "C=0.01", "--trees", 3, "--structure", "auto")
    return path


def test_several_trees_are_an_ensemble_with_its_defaults(digit_files, pool, reference):
    classifier = load(pool).classifier
    assert classifier.trees_ == reference.trees_
    assert str(classifier.get_params()) == str(reference.get_params())
    np.testing.assert_array_equal(
        classifier.predict_log_proba(digit_files.X_test), reference.predict_log_proba(digit_files.X_test)
    )


def test_every_option_reaches_the_ensemble(digit_files, tmp_path):
    options = "--estimator gaussian-nb --trees 2 --max-features 0.25 --pooling arithmetic "
    options += "--structure class-balanced --external none --internal platt "
    fit(digit_files.test, tmp_path / "m", *options.split(), "--seed", 7)
    fitted = load(tmp_path / "m").classifier.get_params(deep=False)
    expected = {"n_estimators": 2, "max_features": 0.25, "pooling": "arithmetic"}
    expected |= {"structure": "class-balanced", "random_state": 7}
    expected |= {"external_calibration": None, "internal_calibration": "platt"}
    assert {name: fitted[name] for name in expected} == expected


def test_the_summary_counts_trees_and_their_nodes(digit_files, reference, tmp_path):
    arguments = ["fit", digit_files.train, "--label", "digit", "--param", "C=0.01", "--trees", 3, "--quiet"]
    summary = run_json(*arguments, "-o", tmp_path / "m")
    depth = max(tree.max_depth for tree in reference.trees_)
    different = reference.n_different_nodes_
    assert (summary["trees"], summary["depth"]) == (3, depth)
    assert (summary["nodes"], summary["different_nodes"]) == (27, different)
    said = run(*arguments, "-o", tmp_path / "m").stdout
    assert f"3 trees of depth {depth} at most, {different} of their 27 nodes different" in said


def test_predictions_are_those_of_the_pool(digit_files, pool, reference):
    rows = list(csv.DictReader(io.StringIO(run("predict", pool, digit_files.test, "-k", 2).stdout)))
    labels, proba = reference.predict_top_k(digit_files.X_test, 2)
    for k in range(2):
        assert [row[f"label_{k + 1}"] for row in rows] == labels[:, k].tolist()
        found = [float(row[f"probability_{k + 1}"]) for row in rows]
        np.testing.assert_allclose(found, proba[:, k], rtol=1e-5)


def test_evaluation_and_report_are_of_the_pool(digit_files, pool, reference, tmp_path):
    expected = evaluate(reference, digit_files.X_test, digit_files.y_test, n_resamples=1).metrics
    document = run_json("evaluate", pool, digit_files.test, "--resamples", 1)
    assert {name: each["estimate"] for name, each in document["metrics"].items()} == pytest.approx(expected)
    run("report", pool, digit_files.test, "-o", tmp_path / "r.html")
    assert "NestedDichotomyEnsemble" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_show_tells_what_an_ensemble_is_and_draws_any_of_its_trees(digit_files, pool, reference):
    facts = run_json("show", pool)
    assert (facts["trees"], facts["nodes"]) == (3, 27)
    assert facts["different_nodes"] == reference.n_different_nodes_
    assert facts["pooling"] == "geometric"
    chosen = reference.calibration_
    calibration = {"internal": chosen.internal, "external": chosen.external}
    assert facts["calibration"] == calibration
    shown = run("show", pool).stdout
    assert f"tree 1 of 3 (--tree draws another):\n{reference.trees_[0].draw()}" in shown
    assert f"calibration: {', '.join(map(' '.join, calibration.items()))}" in shown
    assert reference.trees_[2].draw() in run("show", pool, "--tree", 3).stdout
    assert "3 trees" in " ".join(run("show", pool, "--tree", 4, code=2).stderr.split())
    assert "pooling" not in run("show", digit_files.model).stdout


def test_ensembles_are_compared_with_trees(digit_files):
    common = "estimator=gaussian-nb"
    configs = [f"one: {common}", f"three: {common} trees=3 pooling=arithmetic"]
    arguments = [each for config in configs for each in ("--config", config)]
    options = ["--label", "digit", "--folds", 2, "--references", "none"]
    found = run_json("compare", digit_files.test, *options, *arguments)
    folds = folds_of(digit_files.y_test, 2, seed=0)
    one, three = (found["configurations"][name]["nll"]["folds"] for name in ("one", "three"))
    for fold in range(2):
        train, test = folds != fold, folds == fold
        clf = NestedDichotomyEnsemble(GaussianNB(), n_estimators=3, pooling="arithmetic", random_state=0)
        clf.fit(digit_files.X_test[train], digit_files.y_test[train])
        expected = evaluate(clf, digit_files.X_test[test], digit_files.y_test[test]).metrics["nll"]
        assert three[fold] == pytest.approx(expected, rel=1e-9)
        assert one[fold] != three[fold]


def test_a_file_says_of_ensembles_what_options_say(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(
        '[pool]\ntrees = 5\nmax-features = 0.3\npooling = "arithmetic"\n'
        '[same]\ntrees = 5\nexternal = "none"\n'
    )
    pool = {"max_features": 0.3, "pooling": "arithmetic"}
    same = Settings(trees=5, values={"external": "none"})
    assert configurations([str(path)]) == {"pool": Settings(trees=5, values=pool), "same": same}


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        (["--pooling", "geometric"], "pooling"),
        (["--max-features", "0.5"], "max_features"),
    ],
)
def test_one_tree_has_no_settings_of_ensembles(option, setting, digit_files, tmp_path):
    said = sentence("fit", digit_files.train, "--label", "digit", "-o", tmp_path / "m", *option, code=2)
    assert f"Only an ensemble of several trees has the setting '{setting}'; say how many (--trees 10" in said
    value = option[1] if option[1:] else "true"
    config = f"a: {setting}={value}"
    assert said == sentence("compare", digit_files.test, "--label", "digit", "--config", config, code=2)


def test_a_share_of_features_that_cannot_be_is_refused(digit_files, tmp_path):
    options = ["--trees", 2, "--max-features", 2, "--quiet"]
    said = sentence("fit", digit_files.test, "--label", "digit", "-o", tmp_path / "m", *options)
    assert "max_features must be a share of the features, above 0 and up to 1, got 2.0" in said


def test_list_has_the_ways_to_pool():
    assert run_json("list")["pooling"].keys() == POOLINGS.keys()
