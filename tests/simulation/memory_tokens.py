"""Which transactions were done under which token: the same one again changes nothing, another one is refused."""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from tests.simulation.store_errors import client_error, invalid

TOKEN_LENGTH_MAX: Final = 36
# How long a token is remembered: docs.aws.amazon.com/amazondynamodb, TransactWriteItems, "Idempotency".
TOKEN_LIFE: Final = timedelta(minutes=10)


class Tokens:
    """Remembers by the clock of AWS."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._known: OrderedDict[str, tuple[datetime, bytes]] = OrderedDict()

    def remember(self, token: str, steps: list[Any]) -> None:
        """Keep that this was done."""
        self._known[token] = self._clock() + TOKEN_LIFE, marshal.dumps(steps, 2)

    def is_replay(self, operation: str, token: str, steps: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether this very transaction was done under its token; another under it is refused."""
        if not 0 < len(token) <= TOKEN_LENGTH_MAX:
            raise invalid(operation, "Member must have length less than or equal to 36")
        now = self._clock()
        while self._known and next(iter(self._known.values()))[0] <= now:
            self._known.popitem(last=False)
        expires_at, earlier = self._known.get(token, (now, b""))
        if expires_at <= now:
            self._known.pop(token, None)
            return False
        if marshal.loads(earlier) != list(steps):  # noqa: S302 - what it was dumped to is this process's own
            raise client_error(
                operation, "IdempotentParameterMismatchException", "Request parameters do not match the first call's"
            )
        return True
