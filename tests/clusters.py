"""Clusters for tests, and classifiers that misbehave on them."""

import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from sklearn.tree import DecisionTreeClassifier


@contextmanager
def dask_client(n_workers, *, processes, threads=1):
    """A Dask client of workers on this machine."""
    distributed = pytest.importorskip("distributed", reason="clusters need dask and distributed")
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=threads, processes=processes, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@contextmanager
def ray_workers(n_workers):
    """Ray on this machine, known to joblib."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        register_ray()
        yield
    finally:
        ray.shutdown()


class DyingTree(DecisionTreeClassifier):
    """A decision tree that kills its process, unless that is the process that made it, or one was killed.

    Parameters
    ----------
    marker : str
        A file that is there once a process was killed.
    owner : int
        The process that lives.
    """

    def __init__(self, marker="", owner=0, max_depth=3, random_state=None):
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.marker = marker
        self.owner = owner

    def fit(self, X, y, sample_weight=None):
        if os.getpid() != self.owner:
            try:
                Path(self.marker).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, sample_weight)
