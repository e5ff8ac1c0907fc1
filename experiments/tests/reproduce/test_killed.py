"""Killed at any moment and started again, a run ends with the results of one that was left in peace."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from experiments.reproduce.trial import PaperStore
from experiments.running.result import METRICS

ROOT = Path(__file__).parents[3]
#: Processes of each life that is cut short. Most have one: it is soon at work.
LIVES = (1, 2, 1, 1, 2, 1, 1, 1)


@pytest.fixture
def start(data_dir):
    """Start the command as users do, in a process group of its own."""
    options = "--dataset optdigits --base naive_bayes --folds 5 --repeats 4 --as-printed"

    def start(store, n_jobs):
        command = [sys.executable, "-m", "experiments.reproduce", *options.split()]
        command += ["--store", store, "--data-dir", data_dir, "--jobs", str(n_jobs), "--output", os.devnull]
        return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL)

    return start


def stored(path):
    """All that is stored, as it is in the file."""
    if not path.exists():
        return {}
    with PaperStore(path, must_exist=True) as store:
        return {result.trial: result for result in store.rows()}


def metrics(path):
    return {trial: [getattr(each, name) for name in METRICS] for trial, each in stored(path).items()}


def wait_for(path, process, n_results):
    """Wait until so many results are stored, or the process has ended."""
    while process.poll() is None:
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                (found,) = connection.execute("SELECT count(*) FROM results").fetchone()
        except sqlite3.OperationalError:  # not there yet
            found = 0
        if found >= n_results:
            return
        time.sleep(0.002)


@pytest.mark.slow
def test_a_run_killed_many_times_ends_as_one_left_in_peace(tmp_path, start):
    chance = random.Random(0)
    killed, peaceful = tmp_path / "killed.sqlite", tmp_path / "peaceful.sqlite"
    n_killed = 0
    for n_jobs in LIVES:
        before = stored(killed)
        process = start(killed, n_jobs)
        wait_for(killed, process, len(before) + chance.randrange(1, 9))
        time.sleep(chance.random() * 0.05)
        os.killpg(process.pid, signal.SIGKILL)
        n_killed += process.wait() == -signal.SIGKILL
        after = stored(killed)
        assert {trial: after[trial] for trial in before} == before  # neither lost nor repeated
    assert n_killed == len(LIVES)
    assert start(killed, 1).wait() == 0
    assert start(peaceful, 1).wait() == 0
    assert len(metrics(peaceful)) == 4 * 5 * 6
    assert metrics(killed) == metrics(peaceful)
    assert [each.name for each in tmp_path.glob("killed*")] == ["killed.sqlite"]
