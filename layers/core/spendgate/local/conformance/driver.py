"""What the conformance suite asks of a gateway, and how a driver answers for one.

A driver is the only part that knows a gateway: how a limit is set there, a model priced, a caller made, the books read,
the process ended. What it cannot do it says by ``Cannot``, with the reason, and the case is reported as unsupported.
Anybody can write one for another gateway: ``spendgate conformance --driver package.module:Driver``.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from spendgate.core.money import Picodollars

# The model that callers ask for unless a case says otherwise, and what each of its tokens costs, in or out: 10 USD a
# million. One rate, so that a gateway that limits tokens limits money by the same number.
MODEL: Final = "conformance-model"
RATE: Final = Picodollars(10_000_000)
EXACT: Final = Picodollars(0)


class Cannot(Exception):
    """A gateway, or its driver, has no way to do what a case needs; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model and its rates in picodollars a token."""

    name: str = MODEL
    input: Picodollars = RATE
    output: Picodollars = RATE
    # Of input that a provider reads from its cache; None is the input's own rate.
    cached: Picodollars | None = None

    @property
    def cache_read(self) -> Picodollars:
        """Of input that a provider reads from its cache."""
        return self.input if self.cached is None else self.cached

    @property
    def cache_write(self) -> Picodollars:
        """Of input that a provider writes to its cache: five quarters of the input's, as at Anthropic."""
        return Picodollars(self.input * 5 // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a case needs of a gateway before its first call.

    ``limit`` holds for all callers together. With ``shares`` there are so many callers, each below a budget of its own
    with that limit; without, one. ``runs`` is the limit of each run. ``daily`` and ``requests_a_minute`` are limits beside
    ``limit``. ``unpriced`` are names that the provider serves and nobody priced. ``call_seconds`` is how long a call may
    last, where a gateway has such a setting. ``dialect`` is one of ``speech.SPEECH``.
    """

    provider_url: str
    limit: Picodollars
    dialect: str = "openai"
    models: tuple[Model, ...] = (Model(),)
    unpriced: tuple[str, ...] = ()
    daily: Picodollars | None = None
    requests_a_minute: int | None = None
    shares: tuple[Picodollars, ...] = ()
    runs: Picodollars | None = None
    call_seconds: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls: a key, and the headers by which a gateway that takes identity from headers knows it."""

    key: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Money held by one call, and the gateway's own record of why."""

    amount: Picodollars
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What a gateway has booked against the limit: settled + held, and of that held.

    ``held`` None: the gateway does not show it. ``records`` None: it keeps none of what it holds. ``resolution`` is how
    exactly the books can be read.
    """

    booked: Picodollars
    held: Picodollars | None
    records: tuple[Held, ...] | None = None
    resolution: Picodollars = EXACT


class Session(Protocol):
    """A gateway that is set up for one case."""

    @property
    def url(self) -> str:
        """Where it answers: OpenAI's and Anthropic's paths are below ``url``/v1, Gemini's below ``url``/v1beta."""
        ...

    @property
    def callers(self) -> tuple[Caller, ...]:
        """Return who may call, one for each share of the setup."""
        ...

    @property
    def asked(self) -> Mapping[str, str]:
        """Return, by the name that a case uses, the name that callers have to ask for."""
        ...

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the gateway's own processes, for whoever measures them; none where they are somebody else's."""
        ...

    def books(self) -> Books:
        """Read the books of the limit."""
        ...

    def restart(self, *, kill: bool) -> None:
        """End the gateway, in order or by SIGKILL, and start it again with what it has kept; ``url`` may change."""
        ...

    def revoke(self, caller: Caller) -> None:
        """Take a caller's key away."""
        ...

    def advance(self, seconds: int) -> None:
        """Move the gateway's clock on."""
        ...

    def run(self, name: str) -> Mapping[str, str]:
        """Return the headers of a call that belongs to a run of this name."""
        ...


class Driver(Protocol):
    """A kind of gateway."""

    name: str

    def version(self) -> str:
        """Return the version of the gateway; Cannot where it is not there."""
        ...

    def command(self) -> str:
        """Return the command line by which it is started, as a reader may repeat it."""
        ...

    def session(self, setup: Setup) -> AbstractContextManager[Session]:
        """Start the gateway or set it up for a case; it ends with the block. Cannot."""
        ...

    def close(self) -> None:
        """End what lives longer than a case."""
        ...


class Limited:
    """A session's answers for what a gateway cannot do; drivers override what theirs can."""

    @property
    def pids(self) -> tuple[int, ...]:
        return ()

    def books(self) -> Books:
        raise Cannot("its books cannot be read")

    def restart(self, *, kill: bool) -> None:
        raise Cannot(f"it cannot be {'killed' if kill else 'restarted'} from here")

    def revoke(self, caller: Caller) -> None:  # noqa: ARG002 - the protocol's
        raise Cannot("it has no keys of its own to take away")

    def advance(self, seconds: int) -> None:  # noqa: ARG002 - the protocol's
        raise Cannot("its clock is the machine's and cannot be moved")

    def run(self, name: str) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        raise Cannot("it has no budget of a run")
