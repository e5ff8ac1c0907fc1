"""What tasks on a cluster share is sent once, kept once per process, and freed; errors and order survive."""

import os
import pickle
import time

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import random_array

from dichotomies._common import parallel, shipping
from dichotomies._common.cluster import DaskCluster
from dichotomies._common.parallel import Context, active
from dichotomies._common.shipping import Shipment, shipment, unpacked
from dichotomies.rows import Rows
from tests.clusters import dask_client

N_NUMBERS = 200_000  # more than a megabyte


def _rows():
    return Rows(np.ones((N_NUMBERS // 10, 10)), np.zeros(N_NUMBERS // 10, dtype=int), np.arange(2))


def _received(shipped, parcel):
    sent = {name: pickle.loads(pickle.dumps(shipped._values[name])) for name in parcel.arrays}
    return unpacked(pickle.loads(pickle.dumps(parcel)), lambda: sent)


def test_an_object_is_received_as_it_was_sent_and_only_once():
    shipped, X = Shipment(), random_array((2000, 1000), density=0.2, format="csr")
    parcel = shipped.parcel({"rows": _rows(), "X": X, "few": np.arange(3)})
    received = _received(shipped, parcel)
    assert (received["X"] != X).nnz == 0
    assert received["rows"].X.shape == (N_NUMBERS // 10, 10)
    assert received["few"].tolist() == [0, 1, 2]
    assert _received(shipped, parcel) is received


def test_large_arrays_and_rows_travel_apart_and_once_for_all_that_hold_them():
    shipped, rows = Shipment(), _rows()
    few = rows.take(np.arange(5))
    first, second = (shipped.parcel((number, rows, few)) for number in range(2))
    assert first.arrays == second.arrays
    assert len(first.arrays) == 1
    one, other = (_received(shipped, each) for each in (first, second))
    assert one[1] is other[1]
    one[1].remember("what", lambda: "computed")
    assert other[1].remember("what", lambda: "computed again") == "computed"
    assert one[2].base is one[1].base


def test_arrays_that_begin_anywhere_in_a_message_are_received_aligned():
    shipped, rows = Shipment(), _rows()
    parcel = shipped.parcel(rows)
    [name] = parcel.arrays
    message = b"x" + shipped._values[name].tobytes()
    sent = np.frombuffer(message, np.float64, offset=1).reshape(rows.X.shape)
    received = unpacked(parcel, lambda: {name: sent})
    assert not sent.flags.aligned
    assert received.X.flags.aligned
    np.testing.assert_array_equal(received.X, rows.X)


def test_a_process_keeps_what_it_was_sent_last():
    for _ in range(shipping._KEPT_SHIPMENTS + 1):
        shipped = Shipment()
        received = _received(shipped, shipped.parcel([1]))
    assert len(shipping._UNPACKED) == shipping._KEPT_SHIPMENTS
    assert received in shipping._UNPACKED[shipped.name].values()
    shipping.drop(shipped.name)
    assert shipped.name not in shipping._UNPACKED


def test_a_process_keeps_rows_and_the_last_of_what_tasks_share():
    shipped, rows = Shipment(), _rows()
    for number in range(3):
        _received(shipped, shipped.parcel((number, rows)))
    kept = list(shipping._UNPACKED[shipped.name].values())
    assert [type(each) for each in kept] == [Rows, tuple]
    assert kept[1][0] == 2


def test_blocks_inside_a_block_are_one_shipment():
    with shipment() as outer, shipment() as inner:
        assert outer is inner
    with shipment() as other:
        assert other is not outer


def test_without_a_cluster_work_stays_here():
    for backend in ("loky", "threading", "sequential"):
        with parallel_config(backend):
            assert active(4) is None


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
    monkeypatch.setattr(shipping, "_UNPACKED", {})
    with parallel_config("dask"):
        results = Context().map(_scaled, np.ones(N_NUMBERS), [(i,) for i in range(20)], range(20))
    assert results == [i * N_NUMBERS for i in range(20)]
    for _ in range(500):  # freed a little later
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            break
        time.sleep(0.01)
    else:
        pytest.fail("data were left on the cluster")
    assert not shipping._UNPACKED


def test_an_error_in_a_task_reaches_the_caller(client, monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0)
    with parallel_config("dask"), pytest.raises(KeyError, match="the third"):
        Context().map(_failing, None, [(i,) for i in range(6)], np.ones(6))


def test_little_work_and_a_single_task_stay_here(client):
    with parallel_config("dask"):
        assert Context().cluster(0.01) is None
        assert isinstance(Context().cluster(60.0), DaskCluster)
        assert Context().map(_pid, None, [()], [60.0]) == [os.getpid()]


def _active_inside():
    with parallel_config("dask"):
        return active(None) is None


def test_tasks_of_a_cluster_send_no_work_themselves(client):
    with parallel_config("dask"):
        assert active(None) is not None
    assert client.submit(_active_inside).result()


def test_a_missing_library_is_named_with_the_extra_that_has_it():
    with pytest.raises(ImportError, match=r"need no_such_library: pip install 'dichotomies\[dask\]'"):
        shipping.optional("no_such_library")


def _noted(shared, number):
    shared.append(number)
    return list(shared)


def test_expensive_tasks_start_first():
    with dask_client(n_workers=1, processes=False), parallel_config("dask") as config:
        remote = DaskCluster(config["backend"])
        costs = [1.0, 5.0, 3.0, 4.0]
        started = max((each for _, each in remote.results(_noted, [], [(c,) for c in costs], costs)), key=len)
    assert started[0] == 5.0
    assert started == sorted(started, reverse=True)
