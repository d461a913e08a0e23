"""The operators' trail: who changed what, when, from what to what, and why. It is only ever added to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

# An AWS identity with its account, role and session name fits.
BY_LENGTH_MAX: Final = 256
REASON_LENGTH_MAX: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change that an operator made. ``kind`` is what and how: ``budget_updated``, ``key_revoked``, ``price_added``.

    ``subject`` is what was changed: a budget's path, ``key:<name>``, ``provider:<name>``, ``route:<name>``, a price
    row's id or a reservation's id. ``before`` and ``after`` hold JSON values only (money as exact USD strings) and
    never a secret; None is "did not exist".
    """

    kind: str
    subject: str
    at: datetime
    by: str
    reason: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
