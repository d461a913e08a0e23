"""One PUT to an address that AWS signed, such as the one that CloudFormation waits at."""

from typing import Final

import httpx

PUT_SECONDS_MAX: Final = 10.0


def signed_put(url: str, body: bytes) -> None:
    """Put a body; httpx.HTTPError where it is not taken. The signature has no content type, so none is sent."""
    httpx.put(url, content=body, headers={"content-type": ""}, timeout=PUT_SECONDS_MAX).raise_for_status()
