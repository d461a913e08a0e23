"""Calls over loopback, so many at once, by a client that costs little beside what it measures; and what a process used."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
CALL_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where calls go."""

    url: str
    headers: Mapping[str, str]
    path: str = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds of one call: to the first byte of the answer's body, and to its last."""

    first: float
    whole: float


class CallFailed(Exception):
    """An answer that is not 200: the figures would be of something else."""


async def calls(target: Target, body: bytes, *, count: int, at_once: int) -> list[Taken]:
    """Make so many calls, ``at_once`` of them at any time, each of these over a connection of its own that stays."""
    left = iter(range(count))
    taken: list[Taken] = []

    async def one_after_another() -> None:
        connection = Connection(target)
        try:
            for _ in left:
                one = await asyncio.wait_for(connection.call(body), CALL_SECONDS_MAX)
                taken.append(one)
        finally:
            connection.close()

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
    return taken


class Connection:
    """A connection that stays, on which one call follows another."""

    def __init__(self, target: Target) -> None:
        parts = urlsplit(target.url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        headers = {"host": f"{self._host}:{self._port}", "content-type": "application/json", **target.headers}
        self._head = f"POST {target.path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items())
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, body: bytes) -> Taken:
        """Send a body; CallFailed where the answer is not 200."""
        request = f"{self._head}content-length: {len(body)}\r\n\r\n".encode() + body
        start = time.perf_counter()
        reader, writer = await self.open()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = head.split(b" ", 2)[1]
        first = await self._body(reader, head)
        end = time.perf_counter()
        if status != b"200":
            raise CallFailed(f"status {status.decode()}")
        if b"connection: close" in head:
            self.close()
        return Taken(first - start, end - start)

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, if it is not connected."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        return self._streams

    async def _body(self, reader: asyncio.StreamReader, head: bytes) -> float:
        """Read the body; return when its first bytes came."""
        if b"transfer-encoding: chunked" not in head:
            at = head.find(b"content-length:")
            if at < 0:
                # It ends with the connection.
                await reader.read(1)
                first = time.perf_counter()
                await reader.read()
                return first
            await reader.readexactly(int(head[at + 15 :].split(b"\r\n", 1)[0]))
            return time.perf_counter()
        first = 0.0
        while size := int((await reader.readline()).split(b";")[0], 16):
            await reader.readexactly(size + 2)
            first = first or time.perf_counter()
        await reader.readline()
        return first

    def close(self) -> None:
        """Give the connection up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time that these processes have used, of all their threads (Linux)."""
    ticks = 0
    for pid in pids:
        # The name, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS_A_SECOND


def memory_kilobytes(pids: Iterable[int]) -> int:
    """Return the resident memory of these processes (Linux)."""
    found = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
        found += int(next(line for line in lines if line.startswith("VmRSS")).split()[1])
    return found


def percentile(times: Iterable[float], share: float) -> float:
    """Return the time below which this share of them lies."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
