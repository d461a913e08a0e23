"""The long run: ``make fuzz-http ARGS="--examples 1000"``, both surfaces under schemathesis from their OpenAPI documents."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from spendgate.local import ministack
from tests.gateway.stand import Stand, standing
from tests.surface.site import Memory, Site, admin_site, gateway_site

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SAID_CHARACTERS_MAX: Final = 3000
ANSWER_SECONDS_MAX: Final = 30
MODES: Final = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 where an answer is not as its document says, or where something stays open."""
    parser = argparse.ArgumentParser(prog="make fuzz-http", description=__doc__)
    parser.add_argument(
        "--examples", type=int, default=60, help="for each operation, half of them against its document"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--surface", choices=("gateway", "admin"), action="append", help="this one only")
    parser.add_argument("--store", choices=("memory", "ministack"), default="memory", help="where the tables are")
    chosen = parser.parse_args(arguments)
    broken = 0
    for surface in chosen.surface or ("gateway", "admin"):
        with ExitStack() as stack:
            stand = stack.enter_context(_stand(chosen.store))
            stand.begin(f"fuzz-{secrets.token_hex(3)}")
            site = gateway_site(stand) if surface == "gateway" else stack.enter_context(admin_site(stand))
            broken += Run(site, examples=chosen.examples, number=chosen.seed).whole(surface)
            if surface == "gateway":
                stand.audited()
    return 1 if broken else 0


@contextmanager
def _stand(store: str) -> Iterator[Stand]:
    if store == "memory":
        with standing("http://127.0.0.1:1", client=Memory()) as stand:
            yield stand
        return
    with tempfile.TemporaryDirectory() as folder:
        emulator = ministack.start(Path(folder), persist=False, environ=os.environ)
        try:
            with standing(emulator.url) as stand:
                yield stand
        finally:
            emulator.stop()


@dataclass
class Run:
    """Requests of every operation of a surface, from one seed; what came of each is printed."""

    site: Site
    examples: int
    number: int
    sent: int = 0
    followed: int = 0
    # One connection for many requests, as an SDK's: an answer that is not read to its end would be the next one's beginning.
    session: requests.Session = field(default_factory=requests.Session)

    def whole(self, surface: str) -> int:
        """Send them all, and return how many operations went wrong."""
        schema: Any = schemathesis.openapi.from_dict(self.site.document)
        self.session.trust_env = False
        broken, start = 0, time.monotonic()
        for result in schema.get_all_operations():
            broken += not self._operation(result.ok())
        seconds = time.monotonic() - start
        sys.stdout.write(
            f"{surface}: {self.sent:,} requests, {self.followed:,} of them by a link, {broken} operations went wrong; "
            f"seed {self.number}, {seconds:.0f} s, {self.sent / seconds:.1f} requests/s\n"
        )
        return broken

    def _operation(self, operation: Any) -> bool:
        seen: Counter[int] = Counter()
        failure: str | None = None
        for mode in MODES:
            try:
                self._requests(operation, operation.as_strategy(generation_mode=mode), seen)()
            except Unsatisfiable:
                # Nothing in this operation can go against its document.
                continue
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it is, it is printed and counted
                failure = _told(error)
        failure = failure or self.site.unheard_of()
        statuses = " ".join(f"{status}:{count}" for status, count in sorted(seen.items()))
        sys.stdout.write(f"{operation.label:62} {seen.total():5} {statuses}\n{failure + chr(10) if failure else ''}")
        sys.stdout.flush()
        return failure is None

    def _requests(self, operation: Any, cases: Any, seen: Counter[int]) -> Callable[[], None]:
        @seed(self.number)
        @settings(
            max_examples=self.examples // 2,
            deadline=None,
            database=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def sent(case: Any) -> None:
            answer = case.call(
                base_url=self.site.url,
                headers=dict(self.site.headers),
                timeout=ANSWER_SECONDS_MAX,
                session=self.session,
            )
            self.sent += 1
            seen[answer.status_code] += 1
            case.validate_response(answer, checks=CHECKS)
            headers = {name: values[-1] for name, values in answer.headers.items()}
            if headers.get("content-type") == "application/json":
                self.site.check(case.method, operation.path, answer.status_code, headers, answer.json())
            self._follow(headers.get("x-spendgate-reservation"))

        return sent

    def _follow(self, reservation: str | None) -> None:
        """Look at the record that an answer names: the call is over, so its money is held by nobody without a reason."""
        if reservation is None:
            return
        path, headers = f"{self.site.url}/v1/reservations/{reservation}", dict(self.site.headers)

        def is_over() -> bool:
            answer = self.session.get(path, headers=headers, timeout=ANSWER_SECONDS_MAX)
            self.sent += 1
            self.followed += 1
            assert answer.status_code == 200, answer.text
            self.site.check("GET", "/v1/reservations/{id}", 200, answer.headers, answer.json())
            return bool(answer.json()["state"] != "in_flight")

        # Of a stream that the caller has left the gateway reads the rest, so its end may come after the answer's.
        self.site.stand.until(is_over)


def _told(error: BaseException) -> str:
    """Return what went wrong and the request that shows it."""
    first = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error
    said = "\n".join(str(one)[:SAID_CHARACTERS_MAX] for one in {str(first): first, str(error): error}.values())
    return f"{type(first).__name__}: {said}"


if __name__ == "__main__":
    sys.exit(main())
