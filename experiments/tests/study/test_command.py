"""The command of the study runs what was asked for, goes on where it stopped and makes its page."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.pages import regions
from experiments.study.__main__ import app
from experiments.study.comparisons import Comparisons
from experiments.study.contents import contents
from experiments.study.long_table import write_csv
from experiments.study.trial import StudyStore

DOCS = Path(__file__).parents[3] / "docs"
SMALL = (
    *("--dataset", "optdigits", "--learner", "naive_bayes", "--repeats", "1"),
    *("--structure", "random", "--structure", "ward"),
)


@pytest.fixture
def invoke(tmp_path, study_data, monkeypatch):
    """Run the command on few small trials, in a folder of its own; the result has `stdout` and `stderr`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DICHOTOMIES_CACHE", str(tmp_path / "cache"))

    def invoke(*arguments):
        usual = ["--data-dir", str(study_data), "--jobs", "1"]
        return CliRunner().invoke(app, [*usual, *arguments], catch_exceptions=False)

    return invoke


def unwrapped(text):
    """An error as one line, without the frame around it."""
    return " ".join(text.replace("│", " ").split())


def test_it_runs_stores_draws_and_shows_what_was_asked_for(invoke, tmp_path):
    result = invoke(*SMALL)
    assert result.exit_code == 0, result.output
    assert "8 trials run, 0 finished before, 0 failed." in result.stderr
    assert "Both together lower the NLL in" in result.stdout
    assert {path.name for path in (tmp_path / "study").iterdir()} == {
        *("results.sqlite", "results.csv", "structures.svg", "depths.svg", "times.svg")
    }


def test_started_again_it_repeats_nothing_and_draws_the_same(invoke, tmp_path):
    invoke(*SMALL, "--calibration", "none")
    again = invoke(*SMALL)
    assert "6 trials run, 2 finished before, 0 failed." in again.stderr
    files = {path: path.read_bytes() for path in (tmp_path / "study").iterdir()}
    shown = invoke("--tables-only")
    assert shown.exit_code == 0
    assert shown.stdout == again.stdout
    assert {path: path.read_bytes() for path in (tmp_path / "study").iterdir()} == files


def test_when_the_time_is_up_the_rest_is_left(invoke):
    invoke(*SMALL, "--calibration", "none")
    result = invoke(*SMALL, "--minutes", "0")
    assert result.exit_code == 0
    assert "0 trials run, 2 finished before, 0 failed." in result.stderr
    assert "The time is up: 6 trials left; the same command goes on from there." in result.stderr


def test_list_says_what_would_be_run_and_makes_no_file(invoke, tmp_path):
    plan = json.loads(invoke(*SMALL, "--list", "--json").stdout)
    counts = {"trials": 8, "finished": 0, "to_run": 8}
    assert plan.pop("seconds") > 0
    assert plan == {"datasets": [{"dataset": "optdigits", **counts}], **counts}
    assert not (tmp_path / "study").exists()


def test_json_is_one_document(invoke):
    names = [grid["name"] for grid in json.loads(invoke(*SMALL, "--json").stdout)]
    assert names[0] == "gains/naive_bayes"


def test_a_page_is_updated_where_it_says_so(invoke, tmp_path):
    (tmp_path / "page.md").write_text("before\n<!-- table: answers -->\n<!-- end -->\nafter\n")
    result = invoke(*SMALL, "--update", "page.md")
    assert result.stdout == ""
    text = (tmp_path / "page.md").read_text()
    assert text.startswith("before\n<!-- table: answers -->\n\n- Internal calibration lowers")
    assert text.endswith("\n\n<!-- end -->\nafter\n")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--structure", "nonsense"), 2, "'nonsense' is not known; choose from random, 2-means"),
        (("--dataset", "rcv1"), 2, "'rcv1' is not known; choose from optdigits"),
        (("--calibration", "all"), 2, "'all' is not known; choose from none, internal, external, both"),
        (("--jobs", "0"), 2, "0 processes run nothing; ask for 1 or more"),
        (("--update", "none.md"), 1, "There is no page none.md to update"),
        (("--tables-only",), 1, "results.sqlite cannot be opened"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence_before_anything_is_run(
    invoke, tmp_path, options, code, said
):
    result = invoke(*SMALL, *options)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in unwrapped(result.stderr)
    assert not (tmp_path / "study").exists()


def test_a_seed_without_results_has_nothing_to_show(invoke):
    invoke(*SMALL, "--calibration", "none")
    result = invoke("--tables-only", "--seed", "7")
    assert result.exit_code == 1
    assert "There is nothing to show" in result.stderr
    assert "holds no results of seed 7" in result.stderr


def test_the_studys_page_is_what_its_store_gives(tmp_path):
    with StudyStore(DOCS / "study" / "results.sqlite", must_exist=True) as store:
        found = Comparisons(store.rows())
    text = (DOCS / "study.md").read_text(encoding="utf-8")
    made = contents(found)
    assert set(made) <= set(regions.region_names(text))
    assert regions.updated(text, made) == text
    write_csv(found, tmp_path / "results.csv")
    assert (tmp_path / "results.csv").read_bytes() == (DOCS / "study" / "results.csv").read_bytes()
