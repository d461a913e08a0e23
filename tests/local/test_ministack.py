"""The local store as a process: it keeps what it was given, it is alone, and it is found again."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from spendgate.errors import LocalStoreFailed
from spendgate.local import ministack
from spendgate.local.ministack import MiniStack

ROOT = Path(__file__).parents[2]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Lend a state folder; end whatever store a failed test leaves on it."""
    started: list[MiniStack] = []
    start = ministack.start
    monkeypatch.setattr(ministack, "start", lambda *args, **kwargs: _noted(started, start(*args, **kwargs)))
    yield tmp_path
    for store in started:
        store.kill()


def test_what_was_written_is_there_after_a_clean_stop_and_start(state: Path) -> None:
    first = ministack.start(state, persist=True, environ=os.environ)
    _make_table(first)
    _put(first, "kept")
    first.stop()

    second = ministack.start(state, persist=True, environ=os.environ)
    found = _get(second, "kept")
    second.stop()

    assert found == {"pk": {"S": "kept"}}


def test_a_store_that_outlived_its_parent_is_adopted_with_what_it_holds(state: Path) -> None:
    parent = _parent_that_starts_a_store(state)
    survivor = json.loads(_line(parent))
    parent.kill()
    _reap(parent)

    adopted = ministack.start(state, persist=True, environ=os.environ)
    found = _get(adopted, "only in memory")
    adopted.stop()

    assert adopted.adopted
    assert adopted.pid == survivor["pid"]
    assert found == {"pk": {"S": "only in memory"}}


def test_an_adopted_store_writes_its_tables_down_at_its_stop(state: Path) -> None:
    parent = _parent_that_starts_a_store(state)
    _line(parent)
    parent.kill()
    _reap(parent)

    ministack.start(state, persist=True, environ=os.environ).stop()
    again = ministack.start(state, persist=True, environ=os.environ)
    found = _get(again, "only in memory")
    again.stop()

    assert not again.adopted
    assert found == {"pk": {"S": "only in memory"}}


def test_a_second_start_on_a_folder_in_use_is_refused_by_name(state: Path) -> None:
    running = ministack.start(state, persist=False, environ=os.environ)

    with pytest.raises(LocalStoreFailed, match="another Spendgate is running") as refusal:
        ministack.start(state, persist=False, environ=os.environ)

    running.stop()
    assert str(state) in str(refusal.value)


def test_it_listens_on_loopback_only(state: Path) -> None:
    running = ministack.start(state, persist=False, environ=os.environ)

    with socket.socket() as elsewhere:
        elsewhere.settimeout(2)
        # Another address of the loopback range reaches a listener on every interface, and none on 127.0.0.1.
        refused = elsewhere.connect_ex(("127.0.0.2", running.port))
    listeners = _listeners_of(running.pid)
    running.stop()

    assert refused != 0
    assert listeners in ([], [f"0100007F:{running.port:04X}"])


def test_it_gets_no_secret_and_no_endpoint_of_its_parent(state: Path) -> None:
    environ = os.environ | {"OPENAI_API_KEY": "sk-secret", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_PROFILE": "p"}

    running = ministack.start(state, persist=False, environ=environ)
    seen = _environment_of(running.pid)
    running.stop()

    assert b"sk-secret" not in seen
    assert b"AWS_ENDPOINT_URL" not in seen
    assert b"AWS_PROFILE" not in seen


def test_a_port_in_use_is_named(state: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(LocalStoreFailed, match=f"port {port} .* not free"):
            ministack.start(state, persist=False, port=port, environ=os.environ)


def test_the_port_asked_for_is_the_port_used(state: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    running = ministack.start(state, persist=False, port=port, environ=os.environ)
    running.stop()

    assert (running.port, running.url) == (port, f"http://127.0.0.1:{port}")


def test_damaged_tables_stop_the_start_and_stay_as_they_are(state: Path) -> None:
    damaged = state / "store" / "dynamodb.json"
    damaged.parent.mkdir()
    damaged.write_text('{"half": ')

    with pytest.raises(LocalStoreFailed, match="damaged"):
        ministack.start(state, persist=True, environ=os.environ)

    assert damaged.read_text() == '{"half": '


def test_a_failed_start_leaves_the_folder_free_for_the_next(state: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(LocalStoreFailed):
            ministack.start(state, persist=False, port=taken.getsockname()[1], environ=os.environ)

    running = ministack.start(state, persist=False, environ=os.environ)

    assert running.alive()
    running.stop()
    assert not running.alive()


def test_a_killed_store_is_not_alive_and_a_new_one_takes_its_place(state: Path) -> None:
    first = ministack.start(state, persist=False, environ=os.environ)
    first.kill()
    alive = first.alive()

    second = ministack.start(state, persist=False, environ=os.environ)
    second.stop()

    assert not alive
    assert second.pid != first.pid


def test_a_record_of_a_dead_store_whose_process_id_lives_on_is_no_store(state: Path) -> None:
    (state / "ministack.json").write_text(json.dumps({"pid": os.getpid(), "port": 9}))

    running = ministack.start(state, persist=False, environ=os.environ)
    running.stop()

    assert not running.adopted
    assert running.pid != os.getpid()


def test_stopping_twice_does_no_harm(state: Path) -> None:
    running = ministack.start(state, persist=False, environ=os.environ)

    running.stop()
    running.stop()

    assert not running.alive()


def _noted(started: list[MiniStack], store: MiniStack) -> MiniStack:
    started.append(store)
    return store


def _client(store: MiniStack) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=store.url,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=10),
    )


def _make_table(store: MiniStack) -> None:
    client = _client(store)
    client.create_table(
        TableName="table",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )
    client.close()


def _put(store: MiniStack, key: str) -> None:
    client = _client(store)
    client.put_item(TableName="table", Item={"pk": {"S": key}})
    client.close()


def _get(store: MiniStack, key: str) -> Any:
    client = _client(store)
    item = client.get_item(TableName="table", Key={"pk": {"S": key}}).get("Item")
    client.close()
    return item


_PARENT = """
import json, os, sys, time
from pathlib import Path
from spendgate.local import ministack
from tests.local.test_ministack import _make_table, _put
store = ministack.start(Path(sys.argv[1]), persist=True, environ=os.environ)
_make_table(store)
_put(store, "only in memory")
print(json.dumps({"pid": store.pid}), flush=True)
time.sleep(60)
"""


def _parent_that_starts_a_store(state: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_PARENT), str(state)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'layers' / 'core'}:{ROOT}"},
        stdout=subprocess.PIPE,
    )


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def _reap(process: subprocess.Popen[bytes]) -> None:
    assert process.wait() == -signal.SIGKILL
    assert process.stdout is not None
    process.stdout.close()


def _listeners_of(pid: int) -> list[str]:
    """Return the local addresses on which a process listens, as the kernel prints them; none where there is no /proc."""
    if not Path("/proc/net/tcp").exists():
        return []
    sockets = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    rows = [
        line.split()
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        if Path(table).exists()
        for line in Path(table).read_text().splitlines()[1:]
    ]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


def _environment_of(pid: int) -> bytes:
    path = Path(f"/proc/{pid}/environ")
    return path.read_bytes() if path.exists() else b""
