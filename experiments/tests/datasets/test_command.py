"""The command of the datasets lists them, and gets those that are named."""

import json

import numpy as np
from typer.testing import CliRunner

from experiments.datasets import DATASETS
from experiments.datasets.__main__ import app


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def write_letter(folder):
    (folder / "letter").mkdir()
    np.savez(folder / "letter" / "letter.npz", X=np.eye(2), y=[0, 1])


def test_it_says_where_each_would_come_from(tmp_path):
    write_letter(tmp_path)
    listed = json.loads(invoke("--data-dir", str(tmp_path), "--json").stdout)
    places = {dataset["name"]: dataset["comes_from"] for dataset in listed}
    assert list(places) == DATASETS.names()
    assert places["letter"] == "data folder"
    lines = invoke("--data-dir", str(tmp_path)).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *places]


def test_it_gets_a_dataset_first_or_says_why_not(cache, tmp_path):
    write_letter(tmp_path)
    assert invoke("--fetch", "letter", "--data-dir", str(tmp_path)).exit_code == 0
    result = invoke("--fetch", "nonsense", "--data-dir", str(tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "There is no dataset 'nonsense'" in result.stderr
