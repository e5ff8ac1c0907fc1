"""What tasks on a cluster share is sent once, kept once per process, and freed; errors and order survive."""

import os
import pickle
import time

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import random_array

from dichotomies._common import cluster, parallel
from dichotomies._common.cluster import Parcel
from dichotomies._common.parallel import Context
from dichotomies.rows import Rows
from tests.clusters import dask_client

N_NUMBERS = 200_000  # more than a megabyte


def _rows():
    return Rows(np.ones((N_NUMBERS // 10, 10)), np.zeros(N_NUMBERS // 10, dtype=int), np.arange(2))


def _sent(value):
    return pickle.loads(pickle.dumps(value))


def test_an_object_is_received_as_it_was_sent_and_only_once():
    X = random_array((2000, 1000), density=0.2, format="csr")
    parcel, arrays = Parcel.of({"rows": _rows(), "X": X, "few": np.arange(3)})
    parcel, arrays = _sent(parcel), _sent(arrays)
    received = parcel.unpacked(arrays)
    assert (received["X"] != X).nnz == 0
    assert received["rows"].X.shape == (N_NUMBERS // 10, 10)
    assert received["few"].tolist() == [0, 1, 2]
    assert parcel.unpacked(arrays) is received


def test_large_arrays_travel_apart_and_once_for_all_that_hold_them():
    rows = _rows()
    parcel, arrays = Parcel.of((rows, rows.take(np.arange(5))))
    assert [each is rows.base for each in arrays] == [True]
    one, few = _sent(parcel).unpacked(_sent(arrays))
    assert few.base is one.base


def test_arrays_that_begin_anywhere_in_a_message_are_received_aligned():
    rows = _rows()
    parcel, [array] = Parcel.of(rows)
    sent = np.frombuffer(b"x" + array.tobytes(), np.float64, offset=1).reshape(array.shape)
    received = parcel.unpacked([sent])
    assert not sent.flags.aligned
    assert received.X.flags.aligned
    np.testing.assert_array_equal(received.X, rows.X)


def test_without_a_cluster_work_stays_here():
    for backend in ("loky", "threading", "sequential"):
        with parallel_config(backend):
            assert not Context(n_jobs=4).is_on_cluster(1e9)


@pytest.fixture(scope="module")
def client():
    with dask_client(n_workers=2, processes=False) as made:
        yield made


def _scaled(shared, factor):
    return factor * shared.sum()


def _pid(_):
    return os.getpid()


def _failing(_, number):
    if number == 3:
        raise KeyError("the third")
    return number


def test_results_come_in_the_order_of_their_arguments_and_nothing_stays_behind(client, monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0)
    with parallel_config("dask"):
        results = Context().map(_scaled, np.ones(N_NUMBERS), [(i,) for i in range(20)], range(20))
    assert results == [i * N_NUMBERS for i in range(20)]
    for _ in range(500):  # freed a little later
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            break
        time.sleep(0.01)
    else:
        pytest.fail("data were left on the cluster")


def test_an_error_in_a_task_reaches_the_caller(client, monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0)
    with parallel_config("dask"), pytest.raises(KeyError, match="the third"):
        Context().map(_failing, None, [(i,) for i in range(6)], np.ones(6))


def test_little_work_and_a_single_task_stay_here(client):
    with parallel_config("dask"):
        assert not Context().is_on_cluster(0.01)
        assert Context().is_on_cluster(60.0)
        assert Context().map(_pid, None, [()], [60.0]) == [os.getpid()]


def _sends_inside():
    with parallel_config("dask"):
        return Context().is_on_cluster(60.0)


def test_tasks_of_a_cluster_send_no_work_themselves(client):
    assert not client.submit(_sends_inside).result()


def test_a_missing_library_is_named_with_the_extra_that_has_it():
    with pytest.raises(ImportError, match=r"need no_such_library: pip install 'dichotomies\[dask\]'"):
        cluster.optional("no_such_library")


def test_expensive_tasks_start_first_and_results_keep_their_order(client, monkeypatch):
    started = []

    def here(function, shared, arguments, *_):
        for i, each in enumerate(arguments):
            started.extend(each)
            yield i, function(shared, *each)

    monkeypatch.setattr(cluster, "results", here)
    costs = [1.0, 5.0, 3.0, 4.0]
    with parallel_config("dask"):
        assert Context().map(_scaled, np.ones(2), [(cost,) for cost in costs], costs) == [2.0, 10.0, 6.0, 8.0]
    assert started == sorted(costs, reverse=True)
