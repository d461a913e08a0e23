"""Finding the gateway, and talking to its admin API."""

import getpass
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
import httpx

from spendgate.cli.failure import ConfigurationWrong, RefusedByGateway, Unreachable
from spendgate.local.paths import LOCAL_FILE, STATE_DIR_DEFAULT

# An audit reads every reservation; everything else answers in moments.
TIMEOUT: Final = httpx.Timeout(300.0, connect=5.0)

_NOT_FOUND: Final = (
    "no gateway found: start one with `spendgate local`, or name one with --url and --token "
    "(SPENDGATE_URL and SPENDGATE_ADMIN_TOKEN)"
)


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where the admin API is, and the token for it."""

    admin_url: str
    token: str

    def get(self, path: str, /, **query: str | int | None) -> dict[str, Any]:
        """Return an answer; Failed where there is none."""
        return self._call("GET", path, query={name: value for name, value in query.items() if value is not None})

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a change and return the answer; Failed where it was refused."""
        return self._call("POST", path, body=body)

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self.token}", **_operator()}
        # No proxy, no netrc: what the environment says about the web is not about this.
        with httpx.Client(trust_env=False, timeout=TIMEOUT) as http:
            try:
                answer = http.request(method, f"{self.admin_url}{path}", params=query, json=body, headers=headers)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise Unreachable(f"no gateway answers at {self.admin_url}: is it running? ({_why(error)})") from error
        return self._read(answer)

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            document = answer.json()
        except ValueError as error:
            raise Unreachable(
                f"{self.admin_url} answered {answer.status_code}, but is not a Spendgate gateway"
            ) from error
        if answer.is_success and isinstance(document, dict):
            return document
        refusal = document.get("error") if isinstance(document, dict) else None
        if not isinstance(refusal, dict) or "message" not in refusal:
            raise Unreachable(f"{self.admin_url} answered {answer.status_code}, but is not a Spendgate gateway")
        kind = ConfigurationWrong if answer.status_code == 422 else RefusedByGateway
        raise kind(
            str(refusal["message"]), code=str(refusal.get("code", "refused")), problems=refusal.get("problems", ())
        )


def find_gateway(url: str | None, token: str | None, environ: Mapping[str, str]) -> Gateway:
    """Return the gateway that is named, else the local one that runs here; Failed where there is neither."""
    if url is None and token is None:
        return _running_here(Path(environ.get("SPENDGATE_STATE") or STATE_DIR_DEFAULT))
    if url is None or token is None:
        missing = "--url (SPENDGATE_URL)" if url is None else "--token (SPENDGATE_ADMIN_TOKEN)"
        raise click.UsageError(f"{missing} is missing: the two go together")
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--url must start with http:// or https://, not {url!r}")
    return Gateway(_admin_url(url), token)


def segment(text: str) -> str:
    """Return a text as one segment of a URL's path."""
    return quote(text, safe="")


def _running_here(state_dir: Path) -> Gateway:
    file = state_dir / LOCAL_FILE
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        url, token = found.get("admin_url") or found["url"], found["admin_token"]
    except FileNotFoundError:
        raise Unreachable(_NOT_FOUND) from None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise Unreachable(
            f"{file} cannot be read ({_why(error)}): start the gateway again with `spendgate local`"
        ) from error
    return Gateway(_admin_url(str(url)), str(token))


def _admin_url(url: str) -> str:
    bare = url.rstrip("/")
    return bare if bare.endswith("/admin") else f"{bare}/admin"


def _operator() -> dict[str, str]:
    """Say who acts, for the trail; the gateway has its own word where there is no usable name."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        return {}
    printable = "".join(character for character in name if "!" <= character <= "~")[:64]
    return {"x-spendgate-operator": printable} if printable else {}


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
