"""Where a call's processor time goes: the stack is looked at every few milliseconds of CPU, and belongs to whom it names.

A sampler rather than a tracing profiler, which makes code of many small calls look dearer than it is.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Final

from benchmarks.cpu import seconds_per_call, warm
from benchmarks.rig import Rig, chat_body

INTERVAL_SECONDS: Final = 0.002

# The innermost frame that is named here has the sample: (end of the file's path, qualified name or "" for all) -> part.
_PARTS: Final = (
    ("botocore/signers.py", "RequestSigner.sign", "botocore: sign"),
    ("botocore/serialize.py", "JSONSerializer.serialize_to_request", "botocore: serialise"),
    ("botocore/regions.py", "EndpointRulesetResolver.construct_endpoint", "botocore: endpoint rules"),
    ("botocore/useragent.py", "UserAgentString.to_string", "botocore: user agent"),
    ("botocore/parsers.py", "ResponseParser.parse", "botocore: parse"),
    ("botocore/client.py", "", "botocore: the rest"),
    ("store/transactions.py", "reserve_steps", "ledger: items and expressions"),
    ("store/transactions.py", "resolve_steps", "ledger: items and expressions"),
    ("store/transact.py", "transact", "ledger: token of the transaction"),
    ("store/ledger.py", "", "ledger: the rest"),
    ("dialects/json_strict.py", "", "dialect: strict JSON"),
    ("dialects/openai_chat.py", "", "dialect: read, stamp, meter"),
    ("dialects/metering.py", "", "dialect: read, stamp, meter"),
    ("spendgate/admission.py", "", "price, bound, reservation"),
    ("spendgate/metering.py", "", "price, bound, reservation"),
    ("providers/attempt.py", "", "httpx"),
    ("spendgate/observability.py", "", "log"),
    ("spendgate/relay.py", "", "relay of a stream"),
    ("spendgate/directory.py", "", "directory"),
    ("benchmarks/rig.py", "", "(the benchmark itself)"),
    ("benchmarks/stub.py", "", "(the benchmark itself)"),
    ("starlette/applications.py", "", "Starlette and asgi.py"),
    ("spendgate/asgi.py", "", "Starlette and asgi.py"),
    ("asyncio/base_events.py", "", "event loop"),
)


async def measure(rig: Rig, *, calls: int, stream: bool = False) -> list[tuple[str, float]]:
    """Return the parts of a 1 KB call with their shares, the largest first."""
    await warm(rig)
    rig.offload.inline = True
    with _sampled() as samples:
        await seconds_per_call(rig, chat_body(1000, stream=stream), calls)
    rig.offload.inline = False
    total = max(1, samples.total())
    return [(part, count / total) for part, count in samples.most_common()]


@contextmanager
def _sampled() -> Iterator[Counter[str]]:
    samples: Counter[str] = Counter()
    part_of = _memory()

    def look(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            part = part_of(frame.f_code)
            if part is not None:
                samples[part] += 1
                return
            frame = frame.f_back
        samples["(elsewhere)"] += 1

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _memory() -> Callable[[CodeType], str | None]:
    known: dict[CodeType, str | None] = {}

    def part_of(code: CodeType) -> str | None:
        if code not in known:
            path = PurePath(code.co_filename).as_posix()
            matches = (part for end, name, part in _PARTS if path.endswith(end) and name in ("", code.co_qualname))
            known[code] = next(matches, None)
        return known[code]

    return part_of
