"""A Dask cluster over a network: two network namespaces of this machine, as if they were two hosts."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import parallel_config

from dichotomies import NestedDichotomyClassifier
from dichotomies._common import parallel
from tests.clusters import DyingTree

HOSTS = {"a": "10.213.7.1", "b": "10.213.7.2"}
SCHEDULER = f"tcp://{HOSTS['a']}:8786"


def _name(host):
    return f"dichotomies-{os.getpid()}-{host}"


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)


@contextmanager
def two_hosts():
    """Two network namespaces with a cable between them, seen from nowhere else."""
    made = []
    try:
        for host in HOSTS:
            _ip("netns", "add", _name(host))
            made.append(host)
        ends = ["link", "add", "cable", "netns", _name("a"), "type", "veth"]
        _ip(*ends, "peer", "name", "cable", "netns", _name("b"))
        for host, address in HOSTS.items():
            _ip("-n", _name(host), "address", "add", f"{address}/30", "dev", "cable")
            _ip("-n", _name(host), "link", "set", "lo", "up")
            _ip("-n", _name(host), "link", "set", "cable", "up")
        yield
    except (subprocess.SubprocessError, FileNotFoundError) as error:
        if len(made) == len(HOSTS):
            raise
        pytest.skip(f"network namespaces cannot be made here: {error}")
    finally:
        for host in made:
            _ip("netns", "delete", _name(host))


@contextmanager
def _running(host, *arguments):
    """A Python process on a host, ended at the end."""
    process = subprocess.Popen(_on(host, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait(timeout=30)


def _on(host, *arguments):
    return ["ip", "netns", "exec", _name(host), sys.executable, *arguments]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ip") is None or os.geteuid() != 0, reason="needs root and iproute2")
def test_a_fit_over_a_network_equals_a_local_one_also_if_a_worker_is_killed(tmp_path):
    pytest.importorskip("distributed", reason="clusters need dask and distributed")
    scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", HOSTS["a"], "--no-dashboard"]
    worker = ["-m", "distributed.cli.dask_worker", SCHEDULER, "--nthreads", "1", "--no-nanny"]
    worker += ["--no-dashboard", "--local-directory", str(tmp_path)]
    with (
        two_hosts(),
        _running("a", *scheduler),
        _running("a", *worker, "--host", HOSTS["a"]),
        _running("b", *worker, "--host", HOSTS["b"]),
    ):
        command = _on("a", "-m", "tests.estimators.test_two_hosts", str(tmp_path / "killed"))
        found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [f"{sorted(HOSTS.values())} equal", "1 left equal"]


def _fit_on_both_hosts(marker):
    """Fit a model of 1,000 classes, then again with a worker that is killed; compare with a local fit."""
    from distributed import Client

    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(1000), 4)
    X = rng.normal(size=(1000, 20))[y] + rng.normal(size=(len(y), 20))
    params = {"internal_calibration": None, "external_calibration": None, "random_state": 0}
    model = NestedDichotomyClassifier(DyingTree(__file__, os.getpid()), **params)  # a file that is there
    expected = model.fit(X, y).predict_log_proba(X[:500])
    parallel._WORTH_SENDING = 0
    with Client(SCHEDULER, timeout=60) as client, parallel_config("dask"):
        client.wait_for_workers(2, timeout=60)
        print(sorted(each["host"] for each in client.scheduler_info()["workers"].values()), end=" ")
        print(_comparison(model.fit(X, y), X, expected))
        model.set_params(estimator__marker=marker).fit(X, y)
        print(len(client.scheduler_info()["workers"]), "left", _comparison(model, X, expected))


def _comparison(model, X, expected):
    with parallel_config("threading"):
        return "equal" if (model.predict_log_proba(X[:500]) == expected).all() else "NOT EQUAL"


if __name__ == "__main__":
    _fit_on_both_hosts(sys.argv[1])
