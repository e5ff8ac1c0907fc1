"""The commands on the pages of the command line and of the first steps do what the pages show."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dichotomies.cli.app import COMMANDS, app

DOCS = Path(__file__).parents[2] / "docs"
SHELL_SIGNS = set("|;<>()")


def blocks(page):
    """Blocks of commands on a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def steps(block):
    """Commands of a block with the output that is shown below each."""
    for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        yield command, expected


def output_of(command):
    """What a command prints; our own commands run in this process, where everything is imported already."""
    if command.startswith("dichotomies ") and not SHELL_SIGNS & set(command):
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
        return result.output
    beside = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        env=os.environ | beside,
    )
    return result.stdout


def about(text):
    """A text without what differs between machines: times, sizes, and digits after the second."""
    text = re.sub(r"[\d.]+ (s|kB|MB)\b", r"# \1", text.replace("\xa0", " "))
    return re.sub(r"(\d\.\d\d)\d+", r"\1", text)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["get-started.md", "command-line.md"])
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    checker = doctest.OutputChecker()
    for block in blocks(page):
        for command, expected in steps(block):
            found = output_of(command)
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert checker.check_output(about(expected), about(found), flags), f"$ {command}\n{found}"


def test_the_page_speaks_of_every_command_for_users_data():
    shown = {
        command.split()[1]
        for block in blocks("command-line.md")
        for command, _ in steps(block)
        if "dichotomies " in command
    }
    assert shown >= {"fit", "predict", "evaluate", "report", "compare", "show"}
    assert shown <= set(COMMANDS)
