"""Evaluation and report from files are those of the library; unknown labels are counted and said."""

import numpy as np
import pytest

from dichotomies.cli import evaluate as command
from dichotomies.metrics import evaluate
from dichotomies.persistence import load
from tests.cli.conftest import run, run_json, sentence, write_digits


@pytest.fixture(scope="module")
def reference(digit_files):
    classifier = load(digit_files.model).classifier
    settings = {"top_k": [2, 3], "n_resamples": 20, "confidence_level": 0.9, "random_state": 1}
    return evaluate(classifier, digit_files.X_test, digit_files.y_test, **settings)


@pytest.fixture(scope="module")
def with_unknown(digit_files, tmp_path_factory):
    """The test rows, the last 30 of them with labels that the model does not know."""
    labels = np.array([label.removeprefix("0") for label in digit_files.y_test], dtype="<U4")
    labels[-30:] = "x"
    return write_digits(tmp_path_factory.mktemp("unknown") / "t.csv", digit_files.X_test, labels)


def test_metrics_are_those_of_the_library(digit_files, reference):
    options = ["-k", 2, "-k", 3, "--resamples", 20, "--confidence", 0.9, "--seed", 1]
    document = run_json("evaluate", digit_files.model, digit_files.test, *options)
    assert (document["rows"], document["classes"], document["unknown_rows"]) == (300, 10, 0)
    assert document["metrics"].keys() == reference.metrics.keys()
    for name, interval in reference.intervals.items():
        assert tuple(document["metrics"][name].values()) == pytest.approx(interval, rel=1e-9)
    assert str(reference) in run("evaluate", digit_files.model, digit_files.test, *options).stdout


def test_rows_are_read_a_batch_at_a_time(digit_files, reference, monkeypatch):
    sizes = []
    found = command._log_proba

    def watched(*arguments):
        for chunk in found(*arguments):
            sizes.append(len(chunk))
            yield chunk

    monkeypatch.setattr(command, "_log_proba", watched)
    monkeypatch.setattr(command, "batch_rows", lambda n_classes: 128)
    document = run_json("evaluate", digit_files.model, digit_files.test, "--resamples", 1)
    assert sizes == [128, 128, 44]
    assert document["metrics"]["nll"]["estimate"] == pytest.approx(reference.metrics["nll"], rel=1e-12)


def test_rows_of_unknown_labels_are_left_out_and_counted(digit_files, with_unknown):
    classifier = load(digit_files.model).classifier
    expected = evaluate(classifier, digit_files.X_test[:270], digit_files.y_test[:270])
    document = run_json("evaluate", digit_files.model, with_unknown, "--resamples", 1)
    assert (document["rows"], document["unknown_rows"], document["unknown_labels"]) == (270, 30, ["0x"])
    accuracy = document["metrics"]["accuracy"]["estimate"]
    assert accuracy == pytest.approx(expected.metrics["accuracy"])
    assert document["accuracy_with_unknown_as_mistakes"] == pytest.approx(0.9 * accuracy)
    said = run("evaluate", digit_files.model, with_unknown, "--resamples", 1).stdout
    assert "30 rows with 1 label that the model does not know ('0x')" in said


def test_weights_count_rows(digit_files, tmp_path):
    header, *lines = digit_files.test.read_text().splitlines()
    weighted, repeated = tmp_path / "w.csv", tmp_path / "r.csv"
    weights = [i % 3 for i in range(len(lines))]
    rows = [f"{line},{weight}" for line, weight in zip(lines, weights, strict=True)]
    weighted.write_text("\n".join([f"{header},times", *rows]))
    copies = [line for line, weight in zip(lines, weights, strict=True) for _ in range(weight)]
    repeated.write_text("\n".join([header, *copies]))
    found = run_json("evaluate", digit_files.model, weighted, "--weight", "times", "--resamples", 1)
    expected = run_json("evaluate", digit_files.model, repeated, "--resamples", 1)
    for name in ("nll", "accuracy", "ece", "brier"):
        estimate = expected["metrics"][name]["estimate"]
        assert found["metrics"][name]["estimate"] == pytest.approx(estimate, rel=1e-9)


def test_a_file_of_unknown_labels_only_is_refused(digit_files):
    said = sentence("evaluate", digit_files.model, digit_files.test, "--label", "pixel_20")
    assert "knows none of the labels" in said


def test_the_report_is_a_page_that_says_what_it_found(digit_files, with_unknown, tmp_path):
    output = tmp_path / "r.html"
    document = run_json("report", digit_files.model, with_unknown, "-o", output, "--examples", "pixel_1")
    assert document["rows"] == 270
    assert document["unknown_rows"] == 30
    page = output.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert document["headline"].startswith("When it says")
    said = run("report", digit_files.model, with_unknown, "-o", output)
    assert document["headline"] in said.stdout
    assert "30 rows" in said.stderr


def test_a_report_nowhere_is_refused_before_the_work(digit_files, tmp_path):
    said = sentence("report", digit_files.model, digit_files.test, "-o", tmp_path / "no" / "r.html")
    assert "There is no folder" in said


def test_a_report_calls_its_options_by_their_names(digit_files, tmp_path):
    arguments = ["report", digit_files.model, digit_files.test, "-o", tmp_path / "r.html", "--label", "digit"]
    assert "has no column 'title' (--examples)" in sentence(*arguments, "--examples", "title")
