"""Digits as files, and a model of them made by the command line."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from dichotomies.cli.app import app

NAMES = [f"pixel_{i}" for i in range(64)]


def run(*arguments, code=0):
    """Run a command and expect an exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def run_json(*arguments):
    """The one JSON document that a command prints."""
    return json.loads(run(*arguments, "--json").stdout)


def sentence(*arguments, code=1):
    """The sentence that a failing command says: one line on stderr, and nothing else anywhere."""
    result = run(*arguments, code=code)
    lines = result.stderr.splitlines()
    assert result.stdout == ""
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("Error: ")
    return lines[0]


def fit(data, output, *options, label="digit", code=0):
    """Fit quietly; an option may be a pair of its name and value."""
    words = [word for option in options for word in (option if isinstance(option, tuple) else (option,))]
    return run("fit", data, "--label", label, "-o", output, "--quiet", *words, code=code)


def write_csv(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_digits(path, X, y):
    rows = ([f"0{label}", *map(int, row)] for row, label in zip(X, y, strict=True))
    return write_csv(path, ["digit", *NAMES], rows)


@pytest.fixture(scope="session")
def digit_files(tmp_path_factory):
    """Training and test rows as CSV files and as arrays, and a model fitted to the first."""
    folder = tmp_path_factory.mktemp("digits")
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 600), slice(600, 900)
    files = SimpleNamespace(
        folder=folder,
        X_train=X[train],
        y_train=np.char.add("0", y[train].astype(str)),
        X_test=X[test],
        y_test=np.char.add("0", y[test].astype(str)),
        train=write_digits(folder / "train.csv", X[train], y[train]),
        test=write_digits(folder / "test.csv", X[test], y[test]),
        model=folder / "digits.model",
    )
    fit(files.train, files.model, "--param", "C=0.01")
    return files
