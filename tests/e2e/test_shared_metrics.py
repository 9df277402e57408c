"""Several API processes behind one address count together."""

from typing import Any

import httpx


def test_a_look_at_one_process_tells_of_all(start_service: Any) -> None:
    with start_service(TEMI_API_WORKERS="2") as service:
        asked_before = _requests(service.url)
        for _ in range(20):
            with httpx.Client(base_url=service.url) as one_connection:
                assert one_connection.get("/v1/datasets").status_code == 200
        looks = [_requests(service.url) for _ in range(6)]
        assert set(looks) == {asked_before + 20}
        text = httpx.get(f"{service.url}/metrics").text
        assert "temi_http_requests_in_flight 1.0" in text
        assert text.count("# TYPE temi_build_info gauge") == 1
        assert "temi_database_up 1.0" in text


def _requests(url: str) -> int:
    wanted = 'temi_http_requests_total{method="GET",route="/v1/datasets",status="200"} '
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return int(sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted)))
