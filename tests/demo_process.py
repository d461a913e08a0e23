"""The demo provider in a process of its own, for tests that need a provider outside of the gateway's reach."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]


class DemoProvider:
    """A running demo provider, told what to do and asked what it did over HTTP."""

    def __init__(self, url: str, client: httpx.Client) -> None:
        self.url = url
        self.client = client

    def behave(self, behaviour: str, *, calls: int | None = None, **options: Any) -> None:
        """Answer the next calls, or all that follow, as a behaviour of ``spendgate.local.demo_book``."""
        document = {"behaviour": behaviour, "calls": calls, **options}
        self.client.post("/_demo", json=document).raise_for_status()

    def reset(self) -> None:
        """Forget every call and behaviour."""
        self.client.delete("/_demo").raise_for_status()

    def book(self) -> dict[str, Any]:
        """Return hits, billed_picodollars, billed_usd, open and requests."""
        document: dict[str, Any] = self.client.get("/_demo").raise_for_status().json()
        return document


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a demo provider; its first line of output is ``{"url": ...}``, and closing its input ends it."""
    return subprocess.Popen(
        [sys.executable, "-m", "spendgate.local.demo_provider", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "layers" / "core")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


@contextmanager
def demo_provider(*, expected_key: str | None = None) -> Iterator[DemoProvider]:
    """Run a demo provider until the block ends."""
    arguments = [] if expected_key is None else ["--expected-key", expected_key]
    # Leaving closes its input, which ends it, and waits for that.
    with start(*arguments) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with httpx.Client(base_url=url, trust_env=False, timeout=10) as client:
            yield DemoProvider(url, client)
