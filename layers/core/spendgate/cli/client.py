"""Finding the gateway, and talking to its admin API."""

import getpass
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import click
import httpx

from spendgate.cli.failure import ConfigurationWrong, Failed, RefusedByGateway, Unreachable
from spendgate.local.paths import LOCAL_FILE, STATE_DIR_DEFAULT

# An audit reads every reservation; everything else answers in moments.
TIMEOUT: Final = httpx.Timeout(300.0, connect=5.0)

_NOT_FOUND: Final = (
    "no gateway found: start one with `spendgate local`, name a stack with --stack "
    "(SPENDGATE_STACK), or a gateway with --url and --token (SPENDGATE_URL and SPENDGATE_ADMIN_TOKEN)"
)


# Whether an answer is worth asking for again: nothing that changes anything is sent twice.
_AGAIN: Final = frozenset({429, 502, 503})
PAUSES: Final = (0.3, 1.0)

Authorise = Callable[[str, str, bytes], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Deployed:
    """What is known of a gateway in an AWS account: its stack, and what IAM calls a request to it."""

    stack: str
    arn_of: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where the admin API is, and what makes a request one that it answers: headers for a method, URL and body."""

    admin_url: str
    authorise: Authorise
    deployed: Deployed | None = None

    def get(self, path: str, /, **query: str | int | None) -> dict[str, Any]:
        """Return an answer; Failed where there is none."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        # Written out here, since a signature is of exactly this text.
        text = f"?{urlencode(given, quote_via=quote, safe='')}" if given else ""
        return self._read("GET", path, self._asked(f"{path}{text}"))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a change and return the answer; Failed where it was refused."""
        return self._read("POST", path, self._sent("POST", path, json.dumps(body).encode()))

    def _asked(self, path: str) -> httpx.Response:
        """Ask, and where a deployed gateway is only busy ask again."""
        for pause in PAUSES if self.deployed else ():
            answer = self._sent("GET", path)
            if answer.status_code not in _AGAIN:
                return answer
            time.sleep(pause)
        return self._sent("GET", path)

    def _sent(self, method: str, path: str, body: bytes = b"") -> httpx.Response:
        url = f"{self.admin_url}{path}"
        headers = {"content-type": "application/json"} if body else {}
        # Locally no proxy: what the environment says about the web is not about this.
        with httpx.Client(trust_env=self.deployed is not None, timeout=TIMEOUT) as http:
            try:
                request = http.build_request(method, url, content=body, headers=headers)
                request.headers.update(self.authorise(method, str(request.url), body))
                return http.send(request)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise Unreachable(f"no gateway answers at {self.admin_url}: is it running? ({_why(error)})") from error

    def _read(self, method: str, path: str, answer: httpx.Response) -> dict[str, Any]:
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
            if self.deployed is not None and isinstance(document, dict):
                said = str(document.get("message") or document.get("Message") or "nothing")
                raise _by_aws(self.deployed, f"{method}/admin{path}", answer.status_code, said)
            raise Unreachable(f"{self.admin_url} answered {answer.status_code}, but is not a Spendgate gateway")
        kind = ConfigurationWrong if answer.status_code == 422 else RefusedByGateway
        raise kind(
            str(refusal["message"]), code=str(refusal.get("code", "refused")), problems=refusal.get("problems", ())
        )


def _by_aws(deployed: Deployed, request: str, status: int, said: str) -> Failed:
    """Return what API Gateway's own answer means, and what to do."""
    match status:
        case 403 if "expired" in said.lower():
            return RefusedByGateway(
                f"the AWS credentials or the clock of this machine have expired: sign in again ({said})",
                code="credentials_expired",
            )
        case 403 if "not authorized" in said.lower():
            return RefusedByGateway(
                f"this AWS identity may not do that on stack {deployed.stack}: allow it execute-api:Invoke on "
                f"{deployed.arn_of(request)}, or on {deployed.arn_of('*/admin/*')} for all",
                code="forbidden",
            )
        case 403:
            return RefusedByGateway(f"AWS does not accept the request's signature: {said}", code="forbidden")
        case 429:
            return RefusedByGateway("the API is throttled: nothing was done, try again in a moment", code="throttled")
        case 504:
            return Unreachable(
                f"stack {deployed.stack} did not answer within API Gateway's 29 seconds; what was asked may still happen"
            )
        case _:
            return Unreachable(f"stack {deployed.stack} answered {status}: {said}; its admin log group may say why")


def find_gateway(url: str | None, token: str | None, environ: Mapping[str, str]) -> Gateway:
    """Return the gateway that is named, else the local one that runs here; Failed where there is neither."""
    if url is None and token is None:
        return _running_here(Path(environ.get("SPENDGATE_STATE") or STATE_DIR_DEFAULT))
    if url is None or token is None:
        missing = "--url (SPENDGATE_URL)" if url is None else "--token (SPENDGATE_ADMIN_TOKEN)"
        raise click.UsageError(f"{missing} is missing: the two go together")
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--url must start with http:// or https://, not {url!r}")
    return Gateway(_admin_url(url), _bearing(token))


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
    return Gateway(_admin_url(str(url)), _bearing(str(token)))


def _admin_url(url: str) -> str:
    bare = url.rstrip("/")
    return bare if bare.endswith("/admin") else f"{bare}/admin"


def _bearing(token: str) -> Authorise:
    headers = {"authorization": f"Bearer {token}", **_operator()}
    return lambda _method, _url, _body: headers


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
