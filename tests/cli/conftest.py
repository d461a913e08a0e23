"""The real commands against a real admin API: uvicorn on 127.0.0.1 over the emulated store."""

import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner, Result
from starlette.applications import Starlette

from spendgate.admin import Admin
from spendgate.cli.main import cli
from spendgate.local.admin_api import admin_routes
from spendgate.providers.recovery import Recovered
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.operators import FILE, Clock

TOKEN = "the-admin-token-of-this-test"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def admin(ledger: Ledger, config: Config, clock: Clock) -> Admin:
    return Admin(
        ledger,
        config,
        clock=clock,
        randomness=secrets.token_bytes,
        loopback_http=True,
        recover=lambda provider, reservation: Recovered(
            report=None, said=f"{provider.name} has no record of {reservation.id}"
        ),
    )


@pytest.fixture
def url(admin: Admin) -> Iterator[str]:
    """A running admin API."""
    server = uvicorn.Server(
        uvicorn.Config(
            Starlette(routes=admin_routes(admin, TOKEN)), host="127.0.0.1", port=0, log_level="critical", lifespan="off"
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=30)
    assert not thread.is_alive()


@dataclass(frozen=True)
class CommandLine:
    """Runs commands in a folder where a local gateway has left its file."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *args: str, input: str | None = None) -> Result:  # noqa: A002 - click's own word
        self.monkeypatch.chdir(self.folder)
        # A narrow terminal without colours, whatever runs the tests.
        result = CliRunner().invoke(cli, args, input=input, env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"})
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        assert "Traceback" not in result.output
        return result

    def json(self, *args: str) -> Any:
        result = self(*args, "--json")
        assert result.exit_code in (0, 1), result.output
        return json.loads(result.stdout)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line where no gateway runs."""
    for name in ("SPENDGATE_URL", "SPENDGATE_ADMIN_TOKEN", "SPENDGATE_STATE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "spendgate.yaml").write_text(FILE, encoding="utf-8")
    return CommandLine(tmp_path, monkeypatch)


@pytest.fixture
def run(nowhere: CommandLine, url: str) -> CommandLine:
    """The command line beside a local gateway."""
    write_local_file(nowhere.folder, url)
    return nowhere


@pytest.fixture
def applied(run: CommandLine, admin: Admin) -> CommandLine:
    """The command line beside a gateway that has a configuration."""
    admin.apply(FILE, by="ana")
    return run


def write_local_file(folder: Path, url: str, *, token: str = TOKEN) -> None:
    """Leave what ``spendgate local`` leaves while it runs."""
    state = folder / ".spendgate"
    state.mkdir(exist_ok=True)
    document = {"url": url, "admin_url": f"{url}/admin", "admin_token": token, "pid": os.getpid()}
    (state / "local.json").write_text(json.dumps(document), encoding="utf-8")
