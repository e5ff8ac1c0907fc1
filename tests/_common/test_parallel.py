"""Running work in parallel leaves the process as it was, and every task one BLAS thread."""

import threading
import time

import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info

from dichotomies._common import parallel
from dichotomies._common.parallel import Context, run


def blas_threads(*_):
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_number_of_blas_threads_is_restored_whoever_leaves_last():
    before = blas_threads()

    def staggered(i):
        time.sleep(0.01 * i)
        run(time.sleep, [(0.05,), (0.05,)], n_jobs=1)

    threads = [threading.Thread(target=staggered, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before


def test_every_task_has_one_blas_thread_in_worker_processes_too():
    assert set(run(blas_threads, [(), ()], n_jobs=1)[0]) == {1}
    with parallel_config("loky", inner_max_num_threads=2):
        for threads in run(blas_threads, [(1,), (2,)], n_jobs=2):
            assert set(threads) == {1}


@pytest.mark.parametrize(("n_jobs", "order"), [(1, [1, 2, 3, 4]), (2, [2, 4, 1, 3])])
def test_workers_start_with_the_most_expensive_tasks_and_results_keep_their_order(n_jobs, order, monkeypatch):
    started = []

    def square(shared, number):
        started.append(number)
        return shared * number**2

    monkeypatch.setattr(parallel, "run", lambda task, arguments, **_: [task(*each) for each in arguments])
    found = Context(n_jobs=n_jobs).map(square, 10, [(1,), (2,), (3,), (4,)], [0.1, 0.4, 0.1, 0.3])
    assert started == order
    assert found == [10, 40, 90, 160]
