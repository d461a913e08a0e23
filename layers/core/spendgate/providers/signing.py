"""Signs a request with the gateway's own role: SigV4 by botocore's signer, which is imported only when something is signed.

Credentials are those of botocore's default chain, read at each use, since a role's change while a function is warm.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from spendgate.errors import SpendgateError

if TYPE_CHECKING:
    from botocore.session import Session

    from spendgate.providers.attempt import Outbound

SERVICE: Final = "bedrock"
_REGION: Final = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-[0-9]+)\.")
_SIGNED_BY_US: Final = frozenset({"authorization", "x-amz-date", "x-amz-security-token"})


class SignatureMissing(SpendgateError):
    """There is nothing to sign with: no credentials, or no region."""


class Signer:
    """Signs for the region in a request's host, else for the gateway's own."""

    def __init__(self, *, region: str | None) -> None:
        self._region = region
        self._lock = threading.Lock()
        self._session: Session | None = None

    def sign(self, outbound: Outbound) -> tuple[tuple[str, str], ...]:
        """Return the headers of a request with its signature; SignatureMissing, and nothing was sent."""
        from botocore.auth import SigV4Auth  # noqa: PLC0415 - a gateway without such a provider does not pay for it
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as above
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - as above

        region = region_of(outbound.url) or self._region
        if region is None:
            raise SignatureMissing("the provider's base URL names no region, and the gateway has none")
        try:
            credentials = self._current().get_credentials()
            frozen = None if credentials is None else credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise SignatureMissing(f"the gateway's role gave no credentials: {type(error).__name__}") from error
        if frozen is None:
            raise SignatureMissing("the gateway has no credentials to sign with, and the provider no secret")
        request = AWSRequest(method="POST", url=outbound.url, data=outbound.body, headers=dict(outbound.headers))
        SigV4Auth(frozen, SERVICE, region).add_auth(request)
        added = ((name.lower(), value) for name, value in request.headers.items() if name.lower() in _SIGNED_BY_US)
        return (*outbound.headers, *added)

    def _current(self) -> Session:
        from botocore.session import get_session  # noqa: PLC0415 - as above

        with self._lock:
            if self._session is None:
                self._session = get_session()
            return self._session


def region_of(url: str) -> str | None:
    """Return the region that a Bedrock host names."""
    found = _REGION.search(f"{urlsplit(url).hostname or ''}.")
    return found[1] if found else None
