"""Odd requests over a raw socket: each gets a clean answer or a closed connection, and nothing stays open behind it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

import pytest

from tests.gateway.stand import Stand, chat, raw_socket, standing
from tests.surface.odd import Door, cases
from tests.surface.site import ROOT, Memory, Site, admin_site, gateway_site

BYTES_MAX = 70_000
_ANSWER = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with standing("http://127.0.0.1:1", client=Memory(), body_bytes_max=BYTES_MAX) as stand:
        yield stand


def test_no_odd_request_to_the_gateway_has_an_answer_of_its_own_fault_or_leaves_anything_open(stand: Stand) -> None:
    stand.begin("odd")
    site = gateway_site(stand)
    door = Door("/v1/chat/completions", site.headers["authorization"], json.dumps(chat()).encode(), BYTES_MAX)
    assert _wrong(site, door) == {}
    stand.until(lambda: all(one.state != "in_flight" for one in stand.reservations()))
    assert site.unheard_of() is None
    stand.audited()


def test_no_odd_request_to_the_admin_api_has_an_answer_of_its_own_fault(stand: Stand) -> None:
    stand.begin("clerks")
    with admin_site(stand, whole=True) as site:
        stop = json.dumps({"path": stand.root, "reason": "x"}).encode()
        assert _wrong(site, Door("/admin/stop", site.headers["authorization"], stop, 64 * 1024)) == {}
        assert site.unheard_of() is None


def test_no_server_of_ours_takes_an_upgrade_whatever_is_installed_beside_it() -> None:
    started = [
        (file.name, {one.arg: one.value for one in call.keywords})
        for folder in ("layers/core/spendgate", "functions")
        for file in (ROOT / folder).rglob("*.py")
        if "uvicorn." in (source := file.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("uvicorn.run", "uvicorn.Config")
    ]

    assert sorted(name for name, _ in started) == ["app.py", "serving.py"]
    assert [ast.unparse(options["ws"]) for _, options in started] == ["'none'", "'none'"]


def _wrong(site: Site, door: Door) -> dict[str, list[int]]:
    """Send every odd request, and return those with an answer that they may not have."""
    found = {name: (_statuses(site, sent), may) for name, sent, may in cases(door)}
    assert _statuses(site, door.sent()) == [200]
    return {name: statuses for name, (statuses, may) in found.items() if not set(statuses) <= may}


def _statuses(site: Site, sent: bytes) -> list[int]:
    """Send bytes, read until the server closes, and return the statuses of its answers; 0 where there is none."""
    received = b""
    with raw_socket(site.url) as connection:
        try:
            connection.sendall(sent)
            while piece := connection.recv(65536):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            # The server has answered, or not, and does not read the rest.
            pass
        except TimeoutError:
            return [-1]
    return [int(status) for status in _ANSWER.findall(received)] or [0]
