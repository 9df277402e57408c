import threading

import pytest
import torch

from temi.training.head_threads import HeadThreadPool

CPU = torch.device("cpu")


def test_results_come_in_order_from_threads_of_one_core_each() -> None:
    torch.set_num_threads(2)
    lanes = HeadThreadPool(5, CPU)

    found = lanes.map(lambda n: (n, torch.get_num_threads()), range(5))

    assert lanes.count == 2
    assert found == [(n, 1) for n in range(5)]
    assert torch.get_num_threads() == 2
    fresh = []
    thread = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert fresh == [2]


def test_one_piece_stays_in_the_callers_thread() -> None:
    torch.set_num_threads(2)
    lanes = HeadThreadPool(1, CPU)

    assert lanes.map(lambda n: threading.get_ident(), [0]) == [threading.get_ident()]


def test_errors_reach_the_caller() -> None:
    torch.set_num_threads(2)

    def fail(n: int) -> int:
        raise ValueError(f"piece {n}")

    with pytest.raises(ValueError, match="piece 0"):
        HeadThreadPool(3, CPU).map(fail, range(3))
