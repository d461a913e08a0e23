"""The suite's provider: it counts what arrives and bills by ``bill``, and the manners of its answers are told to it.

Nothing of a gateway's view of the world is in it: what it billed is the truth that the books are compared with.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spendgate.core.money import Picodollars
from spendgate.local.conformance.bill import Terms
from spendgate.local.conformance.driver import Model
from spendgate.local.conformance.manner import OK, Manner


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request that arrived: names and numbers, never its text."""

    path: str
    billed: Picodollars
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    # It had the text that the provider was told to watch for.
    watched: bool = False


class Provider:
    """The provider's bookkeeping, its terms, and what it was told to do next."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.url = ""
        self.terms = Terms()
        self.manner = OK
        # Nothing more is to be shown: whoever still waits is let go.
        self.over = False
        # A text that has no business here: a caller's key.
        self.watched_for = ""
        self.models = {model.name: model for model in models}
        self._next: deque[Manner] = deque()
        self._arrivals: list[Arrival] = []
        self._open = 0
        self._lock = threading.Lock()

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """Every request that came, in order."""
        with self._lock:
            return tuple(self._arrivals)

    @property
    def hits(self) -> int:
        """How many requests came that could be billed."""
        return len(self.arrivals)

    @property
    def billed(self) -> Picodollars:
        """What was billed, for good: nothing that happens to a connection takes it back."""
        return Picodollars(sum(one.billed for one in self.arrivals))

    @property
    def open(self) -> int:
        """How many requests are being answered now."""
        return self._open

    def tell(self, *manners: Manner) -> None:
        """Say how the next calls are answered, one each; those after them as ``manner``."""
        self._next.extend(manners)

    def take(self) -> Manner:
        """Return how the call at hand is answered."""
        return self._next.popleft() if self._next else self.manner

    def arrived(self, arrival: Arrival) -> None:
        """Write down a request."""
        with self._lock:
            self._arrivals.append(arrival)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request as open."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


def quiet(provider: Provider, *, seconds: float) -> bool:
    """Wait until the provider answers nobody; False where that does not happen in time."""
    deadline = time.monotonic() + seconds
    while provider.open:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
