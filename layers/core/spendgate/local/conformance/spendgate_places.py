"""Where a Spendgate under test runs: in processes of the suite's own, or wherever it already does."""

import functools
import json
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import httpx

from spendgate.errors import LocalStoreFailed
from spendgate.local import ministack
from spendgate.local.conformance.child import Child, accepts
from spendgate.local.conformance.driver import Cannot
from spendgate.local.paths import LOCAL_FILE

# Before any case: a gateway needs something to serve, and this can spend nothing.
NOTHING: Final = "version: 1\nbudgets:\n  conformance: {limits: {usd: {life: 0}}}\n"
_STARTS_MAX: Final = 3
# How a run names what it makes.
_OWN_NAME: Final = re.compile(r"c[0-9a-f]{6}-[0-9]+(?:-.*)?\Z")


class Admin:
    """The admin API of a running gateway."""

    url: str
    token: str

    def get(self, path: str, /, **query: str | int) -> dict[str, Any]:
        """Return an answer; Cannot where there is none."""
        return self._read(self._http.get(f"{self.url}/admin{path}", params=query, headers=self._headers()))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a change; Cannot where it is refused."""
        document = self._read(self._http.post(f"{self.url}/admin{path}", json=body, headers=self._headers()))
        if not document.get("complete", True):
            raise Cannot(f"the configuration was applied in part only: {document.get('failure')}")
        return document

    def configure(self, text: str) -> None:
        """Apply a file."""
        self.post("/apply", {"file": text})

    def close(self) -> None:
        """Close the connections to it."""
        self._http.close()

    @functools.cached_property
    def _http(self) -> httpx.Client:
        return httpx.Client(trust_env=False, timeout=60)

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}", "x-spendgate-operator": "conformance"}

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        if not answer.is_success:
            raise Cannot(f"the admin API answered {answer.status_code}: {answer.text[:300]}")
        document: dict[str, Any] = answer.json()
        return document

    def restart(self, *, kill: bool) -> None:
        raise Cannot(f"it runs elsewhere and cannot be {'killed' if kill else 'restarted'} from here")

    def advance(self, seconds: int) -> None:  # noqa: ARG002 - the protocol's
        raise Cannot("it runs elsewhere and its clock cannot be moved from here")

    @property
    def pids(self) -> tuple[int, ...]:
        return ()


class Target(Admin):
    """A gateway that somebody else runs."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def claim(self) -> None:
        """Look whether it answers, lets the suite in and has nothing that the suite's files would take away; Cannot."""
        with ExitStack() as undone:
            # Who may not come in leaves nothing open; who may closes when it leaves.
            undone.callback(self.close)
            try:
                self._check(NOTHING)
            except (httpx.HTTPError, ValueError) as error:
                raise Cannot(f"no gateway answers at {self.url}/admin: {error}") from error
            undone.pop_all()

    def configure(self, text: str) -> None:
        """Apply a file, unless that would take away what is not the suite's own."""
        self._check(text)
        super().configure(text)

    def leave(self) -> None:
        """Take away the keys and routes of the last case; a gateway that is gone has none."""
        with suppress(httpx.HTTPError, Cannot):
            self.configure(NOTHING)
        self.close()

    def _check(self, text: str) -> None:
        changes = self.post("/plan", {"file": text})["changes"]
        others = sorted(
            f"{one['kind']} {one['name']}"
            for one in changes
            if one["action"] in {"revoke", "delete"} and _OWN_NAME.match(one["name"]) is None
        )
        if others:
            raise Cannot(f"the suite wants a gateway of its own: its file would take away {', '.join(others[:5])}")


class Own(Admin):
    """A ``spendgate local`` of this driver's own."""

    def __init__(self, folder: Path, call_seconds: int) -> None:
        self._state = folder / "state"
        self._file = folder / "spendgate.yaml"
        self._file.write_text(NOTHING, encoding="utf-8")
        self._clock = folder / "clock"
        self._clock.write_text("0")
        program = "spendgate.local.conformance.on_a_clock"
        self._child = Child(
            [sys.executable, "-m", program, str(self._state), str(self._file), str(self._clock)],
            folder,
            {
                # This package, wherever it was found from.
                "PYTHONPATH": str(Path(__file__).parents[3]),
                "SPENDGATE_CALL_SECONDS_MAX": str(call_seconds),
                "SPENDGATE_DEADLINE_GRACE_SECONDS": "2",
                # The suite's provider is frozen or killed at times: an old connection says nothing about the gateway.
                "SPENDGATE_IDLE_SECONDS_MAX": "0",
            },
        )

    @property
    def pids(self) -> tuple[int, ...]:
        return (self._child.pid,)

    def configure(self, text: str) -> None:
        """Apply a file, also when the gateway is started again."""
        super().configure(text)
        self._file.write_text(text, encoding="utf-8")

    def start(self) -> None:
        """Start it, and find it; a busy machine may need more than one try."""
        for _ in range(_STARTS_MAX - 1):
            with suppress(Cannot):
                return self._child.start(self._found)
        return self._child.start(self._found)

    def restart(self, *, kill: bool) -> None:
        self._child.end(signal.SIGKILL if kill else signal.SIGTERM)
        self.start()

    def advance(self, seconds: int) -> None:
        moved = self._clock.with_suffix(".new")
        moved.write_text(str(int(self._clock.read_text()) + seconds))
        moved.replace(self._clock)

    def end(self) -> None:
        """End the gateway, and a store that a killed one has left."""
        self.close()
        self._child.end()
        if (self._state / "ministack.json").exists():
            with suppress(LocalStoreFailed):
                ministack.start(self._state, persist=False, environ={}).kill()

    def _found(self) -> bool:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            document = json.loads((self._state / LOCAL_FILE).read_text())
            if document["pid"] == self._child.pid:
                self.url, self.token = document["url"], document["admin_token"]
                return accepts(httpx.URL(self.url).port or 80)
        return False
