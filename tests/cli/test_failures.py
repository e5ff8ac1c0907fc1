"""Failures are one sentence and an exit code: 1 for the work, 2 for the command, 130 for an interruption."""

import os
import stat
import sys
import warnings

import pytest
from typer.testing import CliRunner

from dichotomies.cli.app import COMMANDS, app
from tests.cli.conftest import run, sentence, write_csv


@pytest.fixture
def fit_text(tmp_path):
    """The sentence about a CSV file that cannot be fitted."""

    def fit(text, *options):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        return sentence("fit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "m", "--quiet", *options)

    return fit


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,u\n2,u\n", "at least two classes, but y has only one class: 'u'"),
        ("x,z\n1,u\n", "no column 'y'"),
        ("x,x,y\n1,1,u\n", "several columns of the same name"),
        ("x,y\n1,u\ninf,v\n", "has inf in the column 'x' of row 1"),
        ("x,y\n1,u\n2\n", "1 values in line 3"),
        ("x,y\nred,u\nred,v\n", "no column left to learn from; left out: 'x' (the same in every row)"),
        ("x,y\n,u\n,v\n", "no column left to learn from; left out: 'x' (no values)"),
    ],
)
def test_data_that_cannot_be_fitted_is_refused_in_a_sentence(text, said, fit_text):
    assert said in fit_text(text)


def test_a_missing_file_is_refused_in_a_sentence(tmp_path):
    said = sentence("fit", tmp_path / "no.csv", "--label", "y", "-o", tmp_path / "m")
    assert said == f"Error: There is no file {tmp_path / 'no.csv'}."


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    data = write_csv(tmp_path / "t.csv", ["x", "y"], [(1, "u"), (2, "v")])
    assert "is a folder" in sentence("fit", data, "--label", "y", "-o", tmp_path)


def test_a_pipe_is_refused_before_the_work(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    data = write_csv(tmp_path / "t.csv", ["x", "y"], [(1, "u"), (2, "v")])
    assert "is a device or a pipe" in sentence("fit", data, "--label", "y", "-o", tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_is_no_data(tmp_path):
    assert "is a folder; give a file" in sentence("fit", tmp_path, "--label", "y", "-o", tmp_path / "m")


@pytest.mark.parametrize(
    "option", [("--delimiter", ";;"), ("--delimiter", "é"), ("--delimiter", ""), ("--jobs", "0")]
)
def test_options_that_cannot_be_are_misunderstandings(option, tmp_path):
    result = run("fit", "t.csv", "--label", "y", "-o", tmp_path / "m", *option, code=2)
    assert "one ASCII character" in result.stderr or "there must be a worker" in result.stderr


def test_a_tab_is_found_and_can_be_typed(tmp_path):
    data = tmp_path / "t.csv"
    data.write_text("x\ty\n" + "1\tu\n2\tv\n" * 20)
    arguments = ["fit", data, "--label", "y", "-o", tmp_path / "m", "--quiet"]
    run(*arguments)
    run(*arguments, "--delimiter", r"\t")
    assert "no column 'y'" in sentence(*arguments, "--delimiter", ",")


def test_debug_shows_where_an_error_comes_from(tmp_path):
    arguments = ["fit", str(tmp_path / "no.csv"), "--label", "y", "-o", str(tmp_path / "m"), "--debug"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "There is no file" in str(result.exception)
    assert result.exception.__traceback__ is not None


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            KeyError("oops"),
            1,
            "Error: Something unexpected happened (KeyError: 'oops'). --debug shows where.\n",
        ),
        (MemoryError("Unable to allocate 9 TiB"), 1, "Error: Unable to allocate 9 TiB\n"),
        (ImportError("pip install it\nnow"), 1, "Error: pip install it now\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_whatever_happens_there_is_no_traceback(error, code, said, monkeypatch, tmp_path):
    def fail(*_, **__):
        raise error

    (tmp_path / "t.csv").touch()
    monkeypatch.setattr("dichotomies.tables.open_table", fail)
    assert run("fit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "m", code=code).stderr == said


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        ("pyarrow.csv", "evaluate", "cli"),
        ("safetensors.numpy", "fit", "save"),
        ("jinja2", "report", "report"),
    ],
)
def test_a_missing_extra_is_named(missing, command, extra, digit_files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    arguments = {
        "fit": [digit_files.test, "--label", "digit", "-o", tmp_path / "m", "--quiet"],
        "evaluate": [digit_files.model, digit_files.test],
        "report": [digit_files.model, digit_files.test, "-o", tmp_path / "r"],
    }
    said = sentence(command, *arguments[command])
    assert f"pip install 'dichotomies[{extra}]'" in said


def test_warnings_are_said_on_one_line(monkeypatch):
    def warn(*_, **__):
        warnings.warn("mind\nthis", stacklevel=1)
        return {}

    monkeypatch.setattr("dichotomies.structures.STRUCTURES.summaries", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run("list").stderr == "Warning: mind this\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command):
    text = run(command, "--help").stdout
    assert f"Example: dichotomies {command}" in text


def test_missing_arguments_are_misunderstandings():
    assert run("predict", code=2).stdout == ""


def test_labels_do_not_command_the_terminal(tmp_path):
    data = write_csv(tmp_path / "t.csv", ["x", "y"], [(i, ["a", "\x1b[31mred"][i % 2]) for i in range(40)])
    run("fit", data, "--label", "y", "-o", tmp_path / "m", "--quiet")
    shown = run("show", tmp_path / "m").stdout
    assert "\x1b" not in shown
    assert r"\x1b[31mred" in shown
    other = write_csv(tmp_path / "o.csv", ["x", "y"], [(1, "\x1b[2J")])
    assert "\x1b" not in sentence("evaluate", tmp_path / "m", other)


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_options_without_values_show_no_type(command):
    assert "bool" not in run(*filter(None, [command]), "--help").stdout
