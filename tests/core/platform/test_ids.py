import time
from concurrent.futures import ThreadPoolExecutor

from app.core.platform.ids import created_at_of, new_id, new_ids


def test_ids_are_prefixed_and_sort_by_creation() -> None:
    ids = [new_id("ds") for _ in range(5_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {len(i) for i in ids} == {len("ds_") + 26}
    assert all(i.startswith("ds_") and i[3:].isalnum() and i.islower() for i in ids)


def test_ids_made_together_sort_between_those_before_and_after() -> None:
    before, together, after = new_id("img"), new_ids("img", 1_000), new_id("img")
    ids = [before, *together, after]
    assert ids == sorted(set(ids))
    assert new_ids("img", 0) == []


def test_ids_from_many_threads_are_unique_and_grow_in_each() -> None:
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: [new_id("job") for _ in range(500)], range(16)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({i for batch in batches for i in batch}) == 16 * 500


def test_the_creation_time_of_an_id() -> None:
    before = time.time()
    made = created_at_of(new_id("img"))
    assert before - 0.002 <= made <= time.time() + 1  # ids of one millisecond count upwards
