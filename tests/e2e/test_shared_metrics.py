"""The metrics of several API processes behind one address are summed."""

from typing import Any

from tests.e2e.conftest import Service


def test_one_process_serves_the_metrics_of_all(start_service: Any) -> None:
    with start_service(TEMI_API_WORKERS="2") as service:
        asked_before = _requests(service)
        for _ in range(20):
            with service.http() as one_connection:
                assert one_connection.get("/v1/datasets").status_code == 200
        looks = [_requests(service) for _ in range(6)]
        assert set(looks) == {asked_before + 20}
        text = _metrics(service)
        assert "temi_http_requests_in_flight 1.0" in text
        assert text.count("# TYPE temi_build_info gauge") == 1
        assert "temi_database_up 1.0" in text


def _metrics(service: Service) -> str:
    with service.http() as http:
        return http.get("/metrics").text


def _requests(service: Service) -> int:
    wanted = 'temi_http_requests_total{method="GET",route="/v1/datasets",status="200"} '
    lines = _metrics(service).splitlines()
    return int(sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted)))
