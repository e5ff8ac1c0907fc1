"""The wheel and the sdist are complete, hold nothing that is not meant for users, and work when installed."""

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import dichotomies

pytest.importorskip("build", reason="distributions are made by the package build")

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Extras for users; `dev` and `docs` are for those who work on the package, and torch takes gigabytes.
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - {"dev", "docs", "gpu"})
#: A use of each extra, run where it is installed; without it, its message must name it.
USES = {
    "": "clf.predict_top_k(X, 2)",
    "cli": "assert subprocess.run([*command, 'list'], capture_output=True).returncode == 0",
    "onnx": "from dichotomies.export import to_onnx; to_onnx(clf)",
    "plot": "from dichotomies.plots import LedgerDisplay; LedgerDisplay.from_estimator(clf, X, y)",
    "report": "clf.report(X, y).save('report.html')",
    "save": "clf.save('m'); assert (dichotomies.load('m').predict(X) == clf.predict(X)).all()",
}
_FIT = """
import subprocess, sys
import dichotomies
from sklearn.datasets import load_iris
assert 'site-packages' in dichotomies.__file__, dichotomies.__file__
command = [sys.executable, '-m', 'dichotomies']
X, y = load_iris(return_X_y=True)
clf = dichotomies.NestedDichotomyClassifier(random_state=0).fit(X, y)
assert clf.score(X, y) > 0.9 and abs(clf.predict_proba(X).sum(axis=1) - 1).max() < 1e-9
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), cwd=ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = wheel.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        described = wheel.read(metadata).decode()
    roots = {name.split("/")[0] for name in names}
    assert roots == {"dichotomies", f"dichotomies-{dichotomies.__version__}.dist-info"}
    assert "dichotomies/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
    assert f"Version: {dichotomies.__version__}" in described
    for field in (
        "License-Expression: BSD-3-Clause",
        "Project-URL: Documentation",
        "Requires-Python",
        "Keywords",
    ):
        assert field in described
    assert "# dichotomies" in described  # the README is the long description


@pytest.mark.slow
def test_the_sdist_holds_what_its_tests_and_pages_need(built):
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    if not (ROOT / ".git").exists():
        pytest.skip("the list of files is that of git")
    tracked = run("git", "ls-files", "src", "tests", "benchmarks", "experiments", "docs", cwd=ROOT).split(
        "\n"
    )
    assert {name for name in tracked if name} <= names
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"):
        assert name in names
    assert not [name for name in names if name.startswith(("docs/_build", "docs/examples", "docs/reference"))]


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment_and_with_each_extra(built, tmp_path):
    bare = environment(tmp_path / "bare")
    install(bare, str(built[0]))
    run_in(bare, _FIT + USES[""])
    said = subprocess.run(
        [bare.with_name("dichotomies"), "list"], capture_output=True, text=True, check=False
    )
    assert said.returncode != 0
    assert "pip install 'dichotomies[cli]'" in said.stderr
    for extra in EXTRAS:
        python = environment(tmp_path / extra, beside=bare)
        install(python, f"{built[0]}[{extra}]")
        run_in(python, _FIT + USES.get(extra, ""))


def environment(folder, beside=None):
    """A new environment without pip; `beside` another one, it sees what is installed there."""
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    if beside:
        (seen,) = beside.parents[1].glob("lib/python*/site-packages")
        (packages / "seen.pth").write_text(f"{seen}\n")
    return folder / "bin" / "python"


def install(python, wheel):
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr:
        pytest.skip("the dependencies cannot be had here")
    assert done.returncode == 0, done.stderr


def run_in(python, code):
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run(str(python), "-c", code, cwd=python.parent, env=without)
