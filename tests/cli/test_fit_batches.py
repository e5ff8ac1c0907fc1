"""``dichotomies fit-batches`` on several files."""

import pandas as pd
import pytest

import dichotomies
from tests.cli.conftest import run, run_json, sentence


@pytest.fixture
def files(tmp_path, digits):
    X, y = digits
    frame = pd.DataFrame(X[:900, 18:46:3]).add_prefix("pixel ")
    frame["kind"] = [["even", "odd"][c % 2] for c in y[:900]]
    frame["y"] = [f"digit {c}" for c in y[:900]]
    paths = [tmp_path / f"part-{i}.parquet" for i in range(3)]
    for i, path in enumerate(paths):
        frame[i::3].to_parquet(path, index=False)
    return paths


@pytest.mark.parametrize("estimator", ["logistic", "gaussian-nb"])
def test_a_model_of_several_files_is_saved_and_evaluated(files, estimator, tmp_path):
    given = ["--label", "y", "--estimator", estimator, "-o", tmp_path / "m", "--max-memory", "1MB"]
    said = run_json("fit-batches", *files, *given, "--quiet")
    assert said["rows"] == 900
    assert said["classes"] == 10
    model = dichotomies.load(tmp_path / "m")
    assert [each.column for each in model.encoders] == ["kind"]
    assert "accuracy" in run("evaluate", tmp_path / "m", files[0]).stdout


def test_the_base_learner_must_be_named(files, tmp_path):
    text = sentence(
        "fit-batches", *files, "--label", "y", "--estimator", "auto", "-o", tmp_path / "m", "--quiet"
    )
    assert "name one" in text
