"""MiniStack's own process: what it is given, and its first words."""

import fcntl
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# All that the store gets of its parent's environment: it has no use for the providers' secrets, and a stale
# AWS_ENDPOINT_URL or AWS_PROFILE would lead it astray.
_ENVIRONMENT_PASSED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


def spawn(state_dir: Path, port: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the process; it holds the state folder's ministack.lock for as long as it lives."""
    lock = os.open(state_dir / "ministack.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with (state_dir / "ministack.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - our own interpreter and module
                # -P: the current folder must not shadow a module.
                [sys.executable, "-P", "-m", "spendgate.local.ministack_process", str(state_dir), str(port)],
                cwd=state_dir,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock,),
                # Ctrl-C reaches every process of a terminal's session; the gateway must end before its store.
                start_new_session=True,
            )
    finally:
        os.close(lock)  # The child's copy keeps the lock.


def environment_of(
    state_dir: Path,
    *,
    persist: bool,
    port: int,
    environ: Mapping[str, str],
    services: tuple[str, ...],
) -> dict[str, str]:
    """Return the environment of the process: a little of the parent\'s, and what keeps it to itself."""
    temporary = state_dir / "tmp"
    temporary.mkdir(exist_ok=True)
    return {name: environ[name] for name in _ENVIRONMENT_PASSED if name in environ} | {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": ",".join(services),
        # Both would listen on every interface in spite of BIND_HOST.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "PERSIST_STATE": "1" if persist else "0",
        "STATE_DIR": str(state_dir / "store"),
        "S3_DATA_DIR": str(state_dir / "store" / "s3"),
        "TMPDIR": str(temporary),
        "LOG_LEVEL": "WARNING",
        # At start and stop MiniStack removes every container of any MiniStack; ours has none, others may.
        "DOCKER_HOST": f"unix://{temporary}/none.sock",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONUNBUFFERED": "1",
    }


def _run(state_dir: Path, port: int) -> None:
    """Be the store: write down who this is, then become MiniStack."""
    record = state_dir / "ministack.json"
    draft = record.with_suffix(".draft")
    draft.write_text(json.dumps({"pid": os.getpid(), "port": port}))
    draft.replace(record)
    sys.argv = ["ministack"]
    runpy.run_module("ministack", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _run(Path(sys.argv[1]), int(sys.argv[2]))
