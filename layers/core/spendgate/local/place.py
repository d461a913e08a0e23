"""Where a local run is: the value that it hands out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spendgate.local.demo_book import DemoBook
from spendgate.wiring import Wired


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """A running local gateway: where it is, and the keys whose secrets are known this time."""

    url: str
    admin_url: str
    admin_token: str = field(repr=False)
    keys: Mapping[str, str] = field(repr=False)
    state_dir: Path
    wired: Wired
    demo_url: str | None = None
    demo: DemoBook | None = None
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return what ``spendgate local --json`` prints."""
        found = {"url": self.url, "admin_url": self.admin_url, "admin_token": self.admin_token, "keys": dict(self.keys)}
        return found if self.demo_url is None else {**found, "demo_provider_url": self.demo_url}
