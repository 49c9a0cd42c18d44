"""Sending OpenTelemetry profiles to a collector, by OTLP over HTTP.

Source: OpenTelemetry Protocol specification, OTLP/HTTP; open-telemetry/opentelemetry-proto:
opentelemetry/proto/collector/profiles/v1development.
"""

from __future__ import annotations

import gzip
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from lbr2pgo.reports.exports.otlp import messages
from lbr2pgo.support.errors import InputError, OutputError
from lbr2pgo.support.extras import extra
from lbr2pgo.support.printable import printable

PATH = "/v1development/profiles"
"""Where a collector takes profiles, unless a URL says otherwise."""
_ANSWERS = "collector.profiles.v1development.profiles_service_pb2"
_SECONDS = 30
_LONGEST = 1 << 16
"""Bytes of an answer that are read."""


def push(content: bytes, url: str) -> None:
    """Send a request that `as_otlp` made.

    Raises InputError for what is no URL of a collector, and OutputError if it does not take the
    profiles, or not all of them.
    """
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    request = urllib.request.Request(whole_url(url), gzip.compress(content, mtime=0), headers)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            _refuse_partial(answer.read(_LONGEST), url)
    except urllib.error.HTTPError as error:
        said = printable(error.read(_LONGEST).decode("utf-8", "replace").strip())
        raise OutputError(
            f"the collector refused the profiles: {error.code} {error.reason}"
            f"{said and f' ({said})'}",
            where=url,
            cure="Check that it takes OTLP profiles (v1development) over HTTP there.",
        ) from error
    except OSError as error:
        raise OutputError(
            f"no collector answers: {getattr(error, 'reason', error)}",
            where=url,
            cure="Check the URL, and that the collector runs.",
        ) from error


def whole_url(url: str) -> str:
    """With the path that collectors have.

    >>> whole_url("http://localhost:4318"), whole_url("https://host/otlp/profiles")
    ('http://localhost:4318/v1development/profiles', 'https://host/otlp/profiles')
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"{url} is no URL of a collector", cure="Give one such as http://localhost:4318."
        )
    return url if parts.path.strip("/") else parts._replace(path=PATH).geturl()


def _refuse_partial(answer: bytes, url: str) -> None:
    """What is no answer of a collector's is taken for none: it said that all is well."""
    response: Any = messages(_ANSWERS).ExportProfilesServiceResponse()
    try:
        response.ParseFromString(answer)
    except extra("google.protobuf.message", "otlp", "--push").DecodeError:
        return
    rejected = response.partial_success.rejected_profiles
    if rejected:
        raise OutputError(
            f"the collector left out {rejected} profiles: "
            f"{printable(response.partial_success.error_message)}",
            where=url,
            cure="Ask whoever runs it for its limits.",
        )
