"""Money is a whole number of picodollars (10**-12 USD); on every wire it is an exact decimal string in USD.

$3 a million tokens is 3_000_000 picodollars a token, so pricing multiplies and adds, and never divides
or rounds. DynamoDB holds 38 digits; nothing here can exceed ``MONEY_MAX``.
"""

import re
from typing import Final, NewType

Picodollars = NewType("Picodollars", int)
Tokens = NewType("Tokens", int)

PICODOLLARS_PER_USD: Final = 10**12
# 10**24 USD: far above any sum of money, far below DynamoDB's 38 digits, so that sums saturate and never wrap.
MONEY_MAX: Final = Picodollars(10**36)

_DECIMAL = re.compile(r"[0-9]{1,24}(?:\.([0-9]+))?", re.ASCII)
_PLACES = 12
_RATE_PLACES = 6


def usd(text: str) -> Picodollars:
    """Return an amount written in USD, like ``"0.50"``; ValueError if it is not an exact, non-negative decimal."""
    return Picodollars(_scaled(text, places=_PLACES))


def rate_per_million(text: str) -> Picodollars:
    """Return the picodollars a token of a rate in USD per million tokens; ValueError below a picodollar a token."""
    return Picodollars(_scaled(text, places=_RATE_PLACES))


def usd_text(amount: int) -> str:
    """Return an amount as its exact decimal string in USD: ``usd_text(282_500_000) == "0.0002825"``."""
    sign = "-" if amount < 0 else ""
    whole, fraction = divmod(abs(amount), PICODOLLARS_PER_USD)
    if not fraction:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{fraction:012d}".rstrip("0")


def saturated(amount: int) -> Picodollars:
    """Return the amount, or ``MONEY_MAX`` where it is larger."""
    return Picodollars(min(amount, MONEY_MAX))


def _scaled(text: str, *, places: int) -> int:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a decimal number of USD such as 5 or 0.25")
    fraction = (match.group(1) or "").rstrip("0")
    if len(fraction) > places:
        raise ValueError(f"{text!r} has more than {places} decimal places")
    whole = text.partition(".")[0]
    scaled: int = int(whole) * 10**places + int(fraction.ljust(places, "0"))
    return scaled
