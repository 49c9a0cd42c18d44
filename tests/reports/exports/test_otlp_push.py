"""Profiles sent to a collector: a server that reads them with the specification's classes."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from builders.recordings import PIE, RECORDING

from lbr2pgo.cli import main

pytest.importorskip("opentelemetry.proto")
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

WORDS = ["report", str(RECORDING), "--binary", str(PIE), "--no-libraries"]


class Collector:
    """What a collector was sent, and what it is to answer."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.requests: list[Any] = []
        self.status = 200
        self.answer = profiles_service_pb2.ExportProfilesServiceResponse().SerializeToString()
        self.url = ""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["Content-Type"] == "application/x-protobuf"
                assert self.headers["Content-Encoding"] == "gzip"
                content = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                request = profiles_service_pb2.ExportProfilesServiceRequest.FromString(content)
                collector.paths.append(self.path)
                collector.requests.append(request)
                self.send_response(collector.status)
                self.end_headers()
                self.wfile.write(collector.answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    with ThreadingHTTPServer(("127.0.0.1", 0), made.handler()) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_port}"
        yield made
        server.shutdown()
        thread.join()


def test_a_collector_gets_all_profiles(
    collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, "--push", collector.url]) == 0
    assert collector.paths == ["/v1development/profiles"]
    (request,) = collector.requests
    texts = request.dictionary.string_table
    profiles = request.resource_profiles[0].scope_profiles[0].profiles
    assert {texts[each.sample_type.type_strindex] for each in profiles} >= {"instructions"}
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"bytes of profiles to {collector.url}" in shown.err


def test_another_path_is_kept(collector: Collector) -> None:
    assert main([*WORDS, "--push", f"{collector.url}/own/profiles"]) == 0
    assert collector.paths == ["/own/profiles"]


@pytest.mark.parametrize("status", [400, 404, 503])
def test_a_collector_that_refuses_is_told(
    collector: Collector, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    collector.status, collector.answer = status, b"no such \x1b[31mtenant"
    assert main([*WORDS, "--push", collector.url]) == 2
    said = capsys.readouterr().err
    assert f"the collector refused the profiles: {status}" in said
    assert "tenant" in said
    assert "\x1b[31m" not in said


def test_profiles_that_it_leaves_out_are_told(
    collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = profiles_service_pb2.ExportProfilesServiceResponse()
    answer.partial_success.rejected_profiles = 3
    answer.partial_success.error_message = "too large"
    collector.answer = answer.SerializeToString()
    assert main([*WORDS, "--push", collector.url]) == 2
    assert "the collector left out 3 profiles: too large" in capsys.readouterr().err


def test_an_answer_of_another_kind_is_no_refusal(collector: Collector) -> None:
    collector.answer = b"\xff\xff ok"
    assert main([*WORDS, "--push", collector.url]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--push", "localhost"], "localhost is no URL of a collector"),
        (["--push", "http://127.0.0.1:1"], "no collector answers"),
        (["--push", "http://127.0.0.1:1", "--format", "csv"], "a collector takes no csv"),
    ],
)
def test_what_can_not_be_sent(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, *words]) == 2
    assert said in capsys.readouterr().err
