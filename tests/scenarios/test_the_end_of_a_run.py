"""How ``spendgate local`` ends, and what it does not do: be there twice, or listen to anybody else."""

import json
import signal
import socket
from pathlib import Path

import pytest

from spendgate.core.money import usd
from tests.scenarios.caller import Plan
from tests.scenarios.configurations import configuration, key_of
from tests.scenarios.processes import callers, gateway, provider, spendgate, until

END_SECONDS_MAX = 45
LISTEN = "0A"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_signal_ends_everything_and_keeps_every_budget(tmp_path: Path, number: signal.Signals) -> None:
    state = tmp_path / "state"
    with provider() as demo, callers(1) as group:
        text = configuration(demo.url, {"acme": usd("1"), "acme/search": usd("0.5")})
        demo.behave("hang", calls=4)
        with gateway(state, text) as running:
            group.begin(Plan(url=running.url, key=key_of("acme/search"), calls=6))
            # Two of the six are answered.
            group.wait_for(2)
            until(lambda: demo.hits() == 6, "all are at the provider")
            before = running.moneys("acme")
            store = running.store_pid()

            assert running.end(number, seconds=END_SECONDS_MAX) == 0

        assert not Path(f"/proc/{store}").exists()
        assert not (state / "local.json").exists()
        assert _processes_naming(state) == []
        # Those who waited are told that nobody knows, not to ask again.
        outcomes = [(one.status, one.code) for one in group.finish()]
        assert sorted(outcomes, key=str) == [(200, None)] * 2 + [(502, "outcome_unknown")] * 4

        with gateway(state, text) as running:
            after = running.moneys("acme")
            assert [one.ledger for one in after] == [one.ledger for one in before]
            assert [one.unknown for one in after] == [one.held for one in before]
            states = [one["state"] for one in running.reservations()]
            assert sorted(states) == ["settled"] * 2 + ["unknown"] * 4
            running.audit()


def test_a_second_run_on_a_state_folder_says_that_there_is_one_and_leaves_it_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with gateway(state) as running:
        second = spendgate("local", "--port", "0", state=state)
        assert second.returncode == 4
        assert "another Spendgate is running on the state folder" in second.stderr
        assert "Traceback" not in second.stderr
        assert running.command("status").returncode == 0
        assert running.end() == 0


def test_a_port_that_is_taken_is_named_and_nothing_is_left_running(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = spendgate("local", "--port", str(port), "--json", state=state)
    assert done.returncode == 4
    assert f"port {port} of 127.0.0.1 cannot be used" in json.loads(done.stderr)["error"]["message"]
    assert _processes_naming(state) == []


def test_everything_listens_on_loopback_only(tmp_path: Path) -> None:
    with gateway(tmp_path / "state") as running:
        # The gateway with its demo provider, and the store.
        ours = _sockets_of(running.process.pid), _sockets_of(running.store_pid())
        listening = _listening()
        for sockets in ours:
            found = [address for inode, address in listening if inode in sockets]
            assert found
            # 127.0.0.1, as the kernel writes it.
            assert {address.partition(":")[0] for address in found} == {"0100007F"}
        assert running.end() == 0


def _sockets_of(pid: int) -> set[str]:
    """Return the inodes of a process's sockets."""
    targets = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    return {target[len("socket:[") : -1] for target in targets if target.startswith("socket:[")}


def _listening() -> list[tuple[str, str]]:
    """Return (inode, local address) of every listening TCP socket."""
    lines = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return [(line[9], line[1]) for line in lines if line[3] == LISTEN]


def _processes_naming(folder: Path) -> list[str]:
    """Return the command lines that name a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            # It ended meanwhile.
            continue
        if any(str(folder).encode() in word for word in words):
            found.append(b" ".join(words).decode(errors="replace"))
    return found
