"""As a program of its own: quick to say what it is, quiet in pipes, and clean on standard output."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import NAMES, write_csv

PROGRAM = [sys.executable, "-m", "dichotomies"]


def test_help_imports_none_of_the_extras_that_commands_need():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from dichotomies.cli.app import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print(*{'pyarrow.csv', 'pyarrow.parquet', 'safetensors', 'jinja2'} & set(sys.modules))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


@pytest.mark.parametrize(
    "command", [["fit", "no.csv", "--label", "y", "-o", "m"], ["predict", "no.model", "no.csv"]]
)
def test_a_missing_file_is_said_before_libraries_are_imported(command):
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from dichotomies.cli.app import app\n"
        f"result = CliRunner().invoke(app, {command!r})\n"
        "print(result.exit_code, result.stderr, *{'sklearn', 'scipy', 'pyarrow'} & set(sys.modules))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n")[0] == f"1 Error: There is no file {command[1]}."
    assert result.stdout.split("\n")[1].split() == []


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    """More rows than a pipe holds predictions of."""
    path = tmp_path_factory.mktemp("many") / "many.csv"
    return write_csv(path, NAMES, [[i % 17] * 64 for i in range(20_000)])


def test_a_reader_that_stops_early_ends_it_quietly(digit_files, many_rows):
    command = [*PROGRAM, "predict", str(digit_files.model), str(many_rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("row,label_1")
        process.stdout.close()
        assert process.stderr.read() == ""


def test_standard_output_is_one_json_document_also_with_progress(digit_files, tmp_path):
    data, model = str(digit_files.test), str(tmp_path / "m")
    command = [*PROGRAM, "fit", data, "--label", "digit", "-o", model, "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["rows"] == 300
    assert "[dichotomies]" in result.stderr


def test_failures_are_exit_codes(tmp_path):
    command = [*PROGRAM, "show", str(tmp_path / "no.model")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"Error: There is no file {tmp_path / 'no.model'}.\n"


def test_termination_leaves_no_unfinished_file(digit_files, many_rows, tmp_path):
    output = tmp_path / "p.csv"
    command = [*PROGRAM, "predict", str(digit_files.model), str(many_rows), "--output", str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not list(tmp_path.glob(".dichotomies-*.part")):
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
    assert list(tmp_path.iterdir()) == []
