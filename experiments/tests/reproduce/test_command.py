"""The command of the reproduction runs what was asked for, goes on where it stopped and shows the tables."""

import json

import pytest
from typer.testing import CliRunner

from experiments.reproduce.__main__ import app
from experiments.reproduce.trial import PaperStore


@pytest.fixture
def invoke(tmp_path, data_dir, monkeypatch):
    """Run the command on few small trials, in a folder of its own; the result has `stdout` and `stderr`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DICHOTOMIES_CACHE", str(tmp_path / "cache"))

    def invoke(*arguments):
        usual = ["--data-dir", str(data_dir), "--jobs", "1", "--folds", "3"]
        return CliRunner().invoke(app, [*usual, *arguments], catch_exceptions=False)

    return invoke


SMALL = ("--dataset", "optdigits", "--base", "naive_bayes", "--scheme", "none", "--scheme", "both_ps")


def unwrapped(text):
    """An error as one line, without the frame around it."""
    return " ".join(text.replace("│", " ").split())


def test_it_runs_stores_and_shows_what_was_asked_for(invoke, tmp_path):
    result = invoke(*SMALL)
    assert result.exit_code == 0, result.output
    assert "6 trials run, 0 finished before, 0 failed." in result.stderr
    with PaperStore(tmp_path / "results.sqlite", must_exist=True) as store:
        rows = store.rows()
    assert {(row.trial.scheme, row.trial.fold, row.trial.reading) for row in rows} == {
        (scheme, fold, "as-numbers-imply") for scheme in ("none", "both_ps") for fold in range(3)
    }
    mean = sum(row.nll for row in rows if row.trial.scheme == "none") / 3
    assert f"{mean:.3f}"[:4] in result.stdout
    assert "4.252 (0.92)" in result.stdout


def test_started_again_it_repeats_nothing(invoke):
    invoke(*SMALL, "--fold-limit", "2")
    again = invoke(*SMALL)
    assert "2 trials run, 4 finished before, 0 failed." in again.stderr


def test_both_readings_can_be_run(invoke):
    result = invoke(*SMALL, "--fold-limit", "1", "--as-printed", "--as-published-numbers-imply")
    assert "4 trials run" in result.stderr
    assert "read as printed" in result.stdout
    assert "read as its numbers imply" in result.stdout


def test_list_says_what_would_be_run_and_makes_no_file(invoke, tmp_path):
    first = invoke(*SMALL, "--list")
    assert "optdigits: 6 trials, 0 finished, 6 to run" in first.stdout
    assert "time: not known before the first results" in first.stdout
    assert not (tmp_path / "results.sqlite").exists()
    invoke(*SMALL, "--fold-limit", "1")
    second = invoke(*SMALL, "--list")
    assert "optdigits: 6 trials, 2 finished, 4 to run" in second.stdout
    assert "In all 4 of 6 trials to run; time: about " in second.stdout


def test_tables_only_shows_the_store_and_runs_nothing(invoke):
    invoke(*SMALL, "--fold-limit", "1")
    result = invoke("--tables-only", "--format", "markdown")
    assert result.exit_code == 0
    assert "| naive Bayes | optdigits | ours, 1 run |" in result.stdout
    assert "trials run" not in result.stderr


def test_list_in_json_is_one_document(invoke):
    invoke(*SMALL, "--fold-limit", "1")
    plan = json.loads(invoke(*SMALL, "--list", "--json").stdout)
    assert plan.pop("seconds") > 0
    counts = {"trials": 6, "finished": 2, "to_run": 4}
    assert plan == {"datasets": [{"dataset": "optdigits", "row": "optdigits", **counts}], **counts}


def test_list_refuses_other_folds_as_a_run_does(invoke):
    invoke(*SMALL, "--fold-limit", "1")
    said = [invoke(*SMALL, "--folds", "5", *more) for more in ([], ["--list"])]
    assert [each.exit_code for each in said] == [1, 1]
    assert said[0].stderr == said[1].stderr
    assert "made with 3 folds, not 5" in said[1].stderr


def test_tables_only_shows_the_seed_that_is_stored(invoke):
    invoke(*SMALL, "--fold-limit", "1", "--seed", "7")
    assert "| naive Bayes | optdigits |" in invoke("--tables-only", "--format", "markdown").stdout
    other = invoke("--tables-only", "--seed", "0")
    assert (other.exit_code, other.stdout) == (1, "")
    assert "There is nothing to show: the 2 results in results.sqlite are of other things" in other.stderr
    assert "seeds 7." in other.stderr


def test_several_seeds_are_not_mixed(invoke):
    for seed in ("7", "9"):
        invoke(*SMALL, "--fold-limit", "1", "--seed", seed)
    result = invoke("--tables-only")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "of seeds 7, 9; choose one to show." in unwrapped(result.stderr)
    assert invoke("--tables-only", "--seed", "9").exit_code == 0


def test_a_store_without_results_has_nothing_to_show(invoke, tmp_path):
    PaperStore(tmp_path / "results.sqlite").close()
    result = invoke("--tables-only", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "There is nothing to show: results.sqlite holds no results yet." in result.stderr


def test_an_empty_file_is_not_made_a_store_by_looking_at_it(invoke, tmp_path):
    (tmp_path / "results.sqlite").touch()
    shown = invoke("--tables-only")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "results.sqlite is empty, not a store of results" in shown.stderr
    assert "6 to run" in invoke(*SMALL, "--list").stdout
    assert (tmp_path / "results.sqlite").read_bytes() == b""


def test_tables_of_a_store_that_is_not_there_are_an_error(invoke, tmp_path):
    result = invoke("--tables-only", "--store", "other.sqlite")
    assert result.exit_code == 1
    assert "other.sqlite cannot be opened" in result.stderr
    assert not (tmp_path / "other.sqlite").exists()


def test_the_form_of_a_file_is_what_its_name_ends_in(invoke, tmp_path):
    invoke(*SMALL, "--fold-limit", "1")
    for name, begins in {"t.md": "NLL", "t.tex": "% needs", "t.html": "<!DOCTYPE", "t.json": "["}.items():
        invoke("--tables-only", "--output", name)
        assert (tmp_path / name).read_text().startswith(begins)


def test_json_is_one_document(invoke):
    result = invoke(*SMALL, "--fold-limit", "1", "--json")
    names = [grid["name"] for grid in json.loads(result.stdout)]
    assert names[:2] == ["poor-nll/as-numbers-imply", "poor-accuracy/as-numbers-imply"]


def test_one_table_limits_base_learners(invoke):
    result = invoke("--table", "logistic-nll", "--dataset", "optdigits", "--list")
    assert "optdigits: 60 trials" not in result.stdout
    assert "optdigits: 6 trials" in result.stdout  # two schemes, three folds


def test_a_page_is_updated_where_it_says_so(invoke, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table: poor-nll/as-numbers-imply -->\n<!-- end -->\nafter\n")
    result = invoke(*SMALL, "--fold-limit", "1", "--update", "page.md")
    assert "Replaced 1 tables in page.md." in result.stderr
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| naive Bayes | optdigits |" in text


def test_outside_its_tables_a_page_stays_as_it_is_to_the_last_byte(invoke, tmp_path):
    page, mark = tmp_path / "page.md", b"<!-- table: poor-nll/as-numbers-imply -->\r\n"
    page.write_bytes(b"before\r\n" + mark + b"<!-- end -->\r\nafter")
    invoke(*SMALL, "--fold-limit", "1", "--update", "page.md")
    content = page.read_bytes()
    assert content.startswith(b"before\r\n" + mark + b"\r\n| Base learner |")
    assert content.endswith(b"|\r\n\r\n<!-- end -->\r\nafter")
    assert content.count(b"\n") == content.count(b"\r\n")


def test_a_page_is_updated_and_the_tables_shown_in_the_format_asked_for(invoke, tmp_path):
    (tmp_path / "page.md").write_text("<!-- table: poor-nll/as-numbers-imply -->\n<!-- end -->\n")
    assert invoke(*SMALL, "--fold-limit", "1", "--update", "page.md").stdout == ""
    shown = invoke("--tables-only", "--update", "page.md", "--format", "latex")
    assert shown.stdout.startswith("% needs")
    written = invoke("--tables-only", "--update", "page.md", "--output", "t.html")
    assert written.stdout == ""
    assert (tmp_path / "t.html").read_text().startswith("<!DOCTYPE")
    assert all("Replaced 1 tables in page.md." in each.stderr for each in (shown, written))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (("--update", "none.md"), "There is no page none.md to update"),
        (("--update", "open.md"), "The region 'one' has no line"),
        (("--output", "none/t.md"), "none/t.md cannot be written: make the folder none first."),
        (("--output", "folder"), "folder cannot be written: name another file"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_reported_before_anything_is_run(invoke, tmp_path, place, said):
    (tmp_path / "open.md").write_text("<!-- table: one -->\n")
    (tmp_path / "folder").mkdir()
    result = invoke(*SMALL, *place)
    assert result.exit_code == 1
    assert said in result.stderr
    assert not (tmp_path / "results.sqlite").exists()


def test_no_process_at_all_is_refused(invoke, tmp_path):
    result = invoke(*SMALL, "--jobs", "0")
    assert result.exit_code == 2
    assert "0 processes run nothing; ask for 1 or more" in unwrapped(result.stderr)
    assert not (tmp_path / "results.sqlite").exists()


def test_a_dataset_that_cannot_be_had_is_named_and_the_others_go_on(invoke):
    result = invoke(*SMALL, "--dataset", "nhcd", "--fold-limit", "1")
    assert result.exit_code == 0
    assert "Without nhcd: The dataset 'nhcd' is not here" in result.stderr
    assert "2 trials run" in result.stderr


def test_nothing_but_missing_datasets_is_an_error(invoke):
    assert invoke("--dataset", "nhcd").exit_code == 1


@pytest.mark.parametrize(
    ("option", "accepted"),
    [("--table", "poor-nll"), ("--dataset", "letter"), ("--base", "naive_bayes"), ("--scheme", "both_ir")],
)
def test_an_unknown_name_is_answered_with_those_there_are(invoke, option, accepted):
    result = invoke(option, "nonsense", "--list")
    assert result.exit_code == 2
    assert "'nonsense' is not known" in result.stderr
    assert accepted in result.stderr


def test_a_failing_trial_ends_in_exit_code_one_and_its_reason(invoke, monkeypatch):
    def measure(trial, **_):
        raise RuntimeError("the reason")

    monkeypatch.setattr("experiments.reproduce.runner.measure", measure)
    result = invoke(*SMALL, "--fold-limit", "1")
    assert result.exit_code == 1
    assert "optdigits, naive_bayes, none, as-numbers-imply, repeat 0, fold 0: RuntimeError: the reason" in (
        result.stderr
    )
    assert "2 failed: start again to try those once more." in result.stderr


def test_an_interrupted_run_says_how_to_go_on(invoke, monkeypatch):
    def measure(trial, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.reproduce.runner.measure", measure)
    result = invoke(*SMALL, "--fold-limit", "1")
    assert result.exit_code == 130
    assert "Everything finished is in results.sqlite: the same command goes on from there." in result.stderr
