"""Virtual keys: ``sg-`` and 160 bits or more of randomness; only the SHA-256 is kept."""

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

KEY_PREFIX: Final = "sg-"
KEY_BYTES: Final = 24
# Keys that a key has minted: "." is none of the characters that follow the prefix of any other key that is made here,
# so a key says by itself which table it stands in, and an unknown one costs no second read.
RUN_KEY_PREFIX: Final = "sg-run."

# A key that a person fixed for a local run may be as short as this; what we make has 32 characters after the prefix.
_KEY = re.compile(r"sg-[A-Za-z0-9._-]{4,128}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key's record. ``models`` are the routes it may ask for; empty means every route.

    ``minted_by`` holds (hash, budget) of every key above a minted one, the one that a person made first.
    """

    hash: str
    name: str
    budget: str
    models: tuple[str, ...] = ()
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    minted_by: tuple[tuple[str, str], ...] = ()


def new_secret(randomness: bytes, *, prefix: str = KEY_PREFIX) -> str:
    """Return a key from ``KEY_BYTES`` or more random bytes; ValueError for fewer."""
    if len(randomness) < KEY_BYTES:
        raise ValueError(f"a key needs at least {KEY_BYTES} random bytes")
    return prefix + base64.urlsafe_b64encode(randomness).decode("ascii").rstrip("=")


def is_well_formed(secret: str) -> bool:
    """Tell whether a text can be a key at all; saves a read of the table for what cannot."""
    return _KEY.fullmatch(secret) is not None


def is_minted(secret: str) -> bool:
    """Tell a key that a key has minted from one that a person made."""
    return secret.startswith(RUN_KEY_PREFIX)


def hash_secret(secret: str) -> str:
    """Return the SHA-256 that stands for a key everywhere.

    The lookup is by this hash, so no comparison of secrets runs in a time that depends on them.
    """
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()


def allows(key: Key, route: str) -> bool:
    """Tell whether a key may ask for a route."""
    return not key.models or route in key.models
