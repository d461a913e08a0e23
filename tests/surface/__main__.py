"""The long run: ``make fuzz-http ARGS="--examples 1000"``, both surfaces under schemathesis from their OpenAPI documents."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from spendgate.local import ministack
from tests.gateway.stand import standing
from tests.surface.site import Site, admin_site, gateway_site

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SAID_CHARACTERS_MAX = 3000
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 where an answer is not as its document says, or where something stays open."""
    parser = argparse.ArgumentParser(prog="make fuzz-http", description=__doc__)
    parser.add_argument(
        "--examples", type=int, default=60, help="for each operation, half of them against its document"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--surface", choices=("gateway", "admin"), action="append", help="this one only")
    chosen = parser.parse_args(arguments)
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        store = ministack.start(Path(folder), persist=False, environ=os.environ)
        try:
            for surface in chosen.surface or ("gateway", "admin"):
                with ExitStack() as stack:
                    stand = stack.enter_context(standing(store.url))
                    stand.begin(f"fuzz-{secrets.token_hex(3)}")
                    site = gateway_site(stand) if surface == "gateway" else stack.enter_context(admin_site(stand))
                    broken += fuzz(site, examples=chosen.examples, number=chosen.seed)
                    if surface == "gateway":
                        stand.audited()
        finally:
            store.stop()
    return 1 if broken else 0


def fuzz(site: Site, *, examples: int, number: int) -> int:
    """Send requests of every operation; print what came of each, and return how many went wrong."""
    schema: Any = schemathesis.openapi.from_dict(site.document)
    broken = total = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        seen: Counter[int] = Counter()
        failure: str | None = None
        for mode in MODES:
            sent = _sent(site, operation.as_strategy(generation_mode=mode), seen, examples=examples // 2, number=number)
            try:
                sent()
            except Unsatisfiable:
                # Nothing in this operation can go against its document.
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is printed and counted
                failure = _told(error)
        failure = failure or site.unheard_of()
        total += seen.total()
        broken += failure is not None
        statuses = " ".join(f"{status}:{count}" for status, count in sorted(seen.items()))
        sys.stdout.write(f"{operation.label:62} {statuses}\n{failure + chr(10) if failure else ''}")
        sys.stdout.flush()
    sys.stdout.write(f"{total:,} requests, {broken} operations went wrong, seed {number}\n")
    return broken


def _told(error: BaseException) -> str:
    """Return what went wrong and the request that shows it."""
    first = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error
    said = "\n".join(str(one)[:SAID_CHARACTERS_MAX] for one in {str(first): first, str(error): error}.values())
    return f"{type(first).__name__}: {said}"


def _sent(site: Site, cases: Any, seen: Counter[int], *, examples: int, number: int) -> Callable[[], None]:
    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def sent(case: Any) -> None:
        answer = case.call(base_url=site.url, headers=dict(site.headers), timeout=30)
        seen[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    return sent


if __name__ == "__main__":
    sys.exit(main())
