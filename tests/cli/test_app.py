"""The command line works as installed, and says what is missing where its extra is not."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import dichotomies
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.cli.app import app
from dichotomies.cli.settings import summaries
from dichotomies.structures import STRUCTURES


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def test_demo_draws_the_tree_and_a_table():
    result = invoke("demo", "--structure", "class-balanced", "--seed", "1")
    assert result.exit_code == 0, result.output
    assert "[0] 10 classes" in result.output
    assert "accuracy" in result.output
    assert "NLL" in result.output
    assert "ECE" in result.output
    assert "internal: isotonic" in result.output
    assert "Best by NLL: both" in result.output
    nll = {
        name: float(result.output.split(name)[1].split("│")[1])
        for name in ("flat: ", "one tree: ", "ten trees: ")
    }
    assert nll["ten trees: "] < nll["flat: "]  # what the documentation says of digits


def test_demo_refuses_an_unknown_structure():
    result = invoke("demo", "--structure", "nonsense")
    assert result.exit_code == 2
    assert "class-balanced" in result.output


def test_list_shows_every_registered_name():
    result = invoke("list")
    assert result.exit_code == 0
    for registry in (STRUCTURES, BINARY, MULTICLASS):
        assert all(name in result.output for name in registry.names())


def test_list_is_also_json():
    named = json.loads(invoke("list", "--json").stdout)
    assert list(named["structure"]) == STRUCTURES.names()
    assert named["estimator"].keys() == summaries().keys()


def test_version():
    assert invoke("--version").output.strip() == f"dichotomies {dichotomies.__version__}"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_extra_it_names_the_extra(missing):
    hide = f"import sys; sys.modules[{missing!r}] = None; from dichotomies.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'dichotomies[cli]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_python_dash_m_is_the_command_line():
    result = subprocess.run(
        [sys.executable, "-m", "dichotomies", "--version"], capture_output=True, text=True, check=True
    )
    assert dichotomies.__version__ in result.stdout


def test_warm_up_says_what_it_compiled_and_where_it_is_kept(tmp_path):
    """In processes of their own: this one has kernels."""
    program = f"""
from sklearn.naive_bayes import GaussianNB
from dichotomies.cli.app import app
from dichotomies.estimators import warm_up
warm_up.LEARNERS = {{"naive-bayes": [GaussianNB()]}}
warm_up.BINARY.names = lambda: ["platt"]
app(["warm-up", "--cache", {str(tmp_path / "kernels")!r}, "--json"])
"""

    def warm_up():
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    first, second = warm_up(), warm_up()
    assert first["folder"].startswith(str(tmp_path / "kernels"))
    assert first["compiled"]["naive-bayes"]
    assert not second["compiled"]["naive-bayes"]


def test_warm_up_refuses_an_unknown_learner_and_a_folder_that_cannot_be_made(tmp_path):
    result = invoke("warm-up", "--learner", "logistik")
    assert result.exit_code == 2
    assert "There is no learner 'logistik'" in result.output
    assert "Did you mean 'logistic'?" in result.output
    (tmp_path / "file").touch()
    result = invoke("warm-up", "--cache", str(tmp_path / "file" / "kernels"))
    assert result.exit_code == 2
    assert "cannot be made" in result.output


def test_folds_are_two_or_more():
    result = invoke("fit", "x.csv", "--label", "y", "--output", "m", "--cv", "1")
    assert result.exit_code == 2
    assert "--cv" in result.output
