import threading

import pytest
import torch

from temi.training.head_threads import HeadThreadPool

CPU = torch.device("cpu")


def test_results_keep_their_order_and_each_thread_uses_one_core() -> None:
    torch.set_num_threads(2)
    pool = HeadThreadPool(5, CPU)

    found = pool.map(lambda n: (n, torch.get_num_threads()), range(5))

    assert pool.n_threads == 2
    assert found == [(n, 1) for n in range(5)]
    assert torch.get_num_threads() == 2
    fresh = []
    thread = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert fresh == [2]


def test_a_single_task_runs_in_the_calling_thread() -> None:
    torch.set_num_threads(2)
    pool = HeadThreadPool(1, CPU)

    assert pool.map(lambda n: threading.get_ident(), [0]) == [threading.get_ident()]


def test_errors_are_raised_in_the_caller() -> None:
    torch.set_num_threads(2)

    def fail(n: int) -> int:
        raise ValueError(f"task {n}")

    with pytest.raises(ValueError, match="task 0"):
        HeadThreadPool(3, CPU).map(fail, range(3))
