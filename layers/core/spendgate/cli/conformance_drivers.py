"""The drivers that ``conformance`` knows by name, and those of one's own."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spendgate.cli.failure import Failed, RefusedByGateway

if TYPE_CHECKING:
    from spendgate.local.conformance.driver import Driver

PEERS: Final = ("hardcap", "inferrail", "governer")


def driver_of(name: str, *, target: str | None, token: str | None, peers: Path | None) -> "Driver":
    """Return a driver by its name; a usage error where it is none, or does not go with what else was given."""
    from spendgate.local.conformance.at_spendgate import Spendgate  # noqa: PLC0415 - no other command needs it

    if name == "spendgate":
        if target is not None and not token:
            raise click.UsageError("--target needs --token TOKEN, the admin token of that gateway")
        return Spendgate(url=target, token=token)
    if name in PEERS:
        return _peer(name, target=target, peers=peers)
    module, colon, attribute = name.partition(":")
    if not colon:
        raise click.UsageError(f"no driver {name!r}; there are spendgate, {', '.join(PEERS)}, and module:Class")
    try:
        factory: Callable[..., Driver] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise Failed(f"the driver {name} cannot be loaded: {error}", code="driver_invalid") from error
    return factory(url=target, token=token)


def check(driver: "Driver") -> None:
    """See that a gateway is there to be judged, before anything is played."""
    from spendgate.local.conformance.driver import Cannot  # noqa: PLC0415 - as above

    try:
        driver.version()
    except Cannot as reason:
        raise RefusedByGateway(f"{driver.name} cannot be played: {reason}", code="gateway_unusable") from reason


def _peer(name: str, *, target: str | None, peers: Path | None) -> "Driver":
    from spendgate.local.conformance.at_governer import Governer  # noqa: PLC0415 - as above
    from spendgate.local.conformance.at_hardcap import Hardcap  # noqa: PLC0415 - as above
    from spendgate.local.conformance.at_inferrail import Inferrail  # noqa: PLC0415 - as above

    if target is not None:
        raise click.UsageError(
            f"--target does not go with --driver {name}: it reads its limits and prices when it starts, and no case "
            "could set them; its driver starts it"
        )
    if peers is None:
        raise click.UsageError(f"--driver {name} needs --peers DIR, where it is installed")
    known: dict[str, Callable[[Path], Driver]] = {"hardcap": Hardcap, "inferrail": Inferrail, "governer": Governer}
    return known[name](peers.resolve())
