"""What the demo provider does with one call: reads it, bills it by the rule, and behaves as it was told to."""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from spendgate.core.money import Picodollars
from spendgate.local.demo_book import BEHAVIOURS, OK, Behaviour, Call, DemoBook
from spendgate.local.demo_control import body_of
from spendgate.local.demo_shapes import Reply, Shape
from spendgate.local.demo_wire import Wire
from spendgate.local.demo_work import SEARCH_FEE, RequestUnreadable, Work

REDIRECTED: Final = "/redirected"
_UNBILLED: Final = frozenset({"refuse", "redirect"})


class Calls:
    """The billable endpoint of one dialect."""

    def __init__(
        self, shape: Shape, book: DemoBook, rates: tuple[Picodollars, Picodollars], expected_key: str | None
    ) -> None:
        self._shape = shape
        self._book = book
        self._rates = rates
        self._expected_key = expected_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._book.answering():
            request = Request(scope, receive)
            wire = Wire(receive, send)
            number, behaviour = self._book.arrived(told=not request.url.path.startswith(REDIRECTED))
            wire.add({self._shape.request_id_header: f"req_demo_{number}"})
            key = _key_of(request.headers)
            try:
                work = self._shape.read(await body_of(request), request.path_params)
            except RequestUnreadable as problem:
                self._book.record(self._seen(request, number, "unreadable", key))
                await self._error(wire, 400, str(problem))
                return
            behaviour = self._chosen(behaviour, work)
            if self._expected_key is not None and not _equal(key, self._expected_key):
                self._book.record(self._worked(request, number, "key_refused", key, work, billed=0))
                await self._error(wire, 401, "The key is not the one that was expected.")
                return
            work, billed = self._billed(behaviour, work)
            self._book.record(self._worked(request, number, behaviour.name, key, work, billed=billed))
            await self._answer(wire, request, number, behaviour, key, work)

    def _chosen(self, told: Behaviour, work: Work) -> Behaviour:
        if told is OK and work.behaviour in BEHAVIOURS:
            return Behaviour(name=work.behaviour)
        return told

    def _billed(self, behaviour: Behaviour, work: Work) -> tuple[Work, int]:
        if behaviour.name == "overbill":
            most = work.output_tokens if work.output_cap is None else work.output_cap * work.choices
            work = replace(work, output_tokens=most * behaviour.factor)
        if behaviour.billed_picodollars is not None:
            return work, behaviour.billed_picodollars
        if behaviour.name in _UNBILLED:
            return work, 0
        input_rate, output_rate = self._rates
        tokens = work.input_tokens * input_rate + work.output_tokens * output_rate
        return work, tokens + work.searches * SEARCH_FEE

    async def _answer(
        self, wire: Wire, request: Request, number: int, behaviour: Behaviour, key: str, work: Work
    ) -> None:
        delay = behaviour.delay_seconds or (1.0 if behaviour.name == "slow" and not behaviour.between_seconds else 0.0)
        if delay and await wire.gone_within(min(delay, behaviour.max_seconds)):
            return
        match behaviour.name:
            case "hang":
                await wire.gone_within(behaviour.max_seconds)
                await wire.abort()
            case "reset":
                await wire.abort()
            case "refuse":
                await self._refuse(wire, behaviour)
            case "error_after_work":
                await self._error(wire, behaviour.status or 500, "The demo provider fails, as it was told to.")
            case "redirect":
                await wire.whole(behaviour.status or 307, b"", {"location": f"{REDIRECTED}{request.url.path}"})
            case "garbage":
                await wire.whole(200, b'{"id": "half a docu', {"content-type": behaviour.content_type})
            case _:
                if behaviour.name == "echo":
                    wire.add({"x-demo-received-key": key})
                    work = replace(work, words=(*work.words, key))
                reply = self._reply(number, behaviour, work)
                if work.stream:
                    await self._stream(wire, behaviour, self._shape.frames(reply))
                else:
                    await self._whole(wire, behaviour, self._shape.body(reply))

    def _reply(self, number: int, behaviour: Behaviour, work: Work) -> Reply:
        usage_text: str | None
        if behaviour.name == "no_usage":
            usage_text = None
        elif behaviour.name == "usage":
            usage_text = json.dumps(behaviour.usage) if behaviour.usage_text is None else behaviour.usage_text
        else:
            usage = self._shape.usage(work.input_tokens, work.output_tokens) | dict(behaviour.usage_fields)
            usage_text = json.dumps(usage)
        other = behaviour.model or "another-model" if behaviour.name == "model_echo" else behaviour.model
        return Reply(
            id=number,
            model=other or work.model,
            words=work.words,
            tool=work.tool,
            choices=work.choices,
            capped=work.capped,
            input_tokens=work.input_tokens,
            usage_text=usage_text,
            usage_asked=work.usage_asked,
            base64=work.base64,
            searches=work.searches,
        )

    async def _whole(self, wire: Wire, behaviour: Behaviour, body: bytes) -> None:
        if behaviour.name in {"cut", "hang_mid_stream"}:
            # An answer that is not a stream is cut in its middle.
            await self._stream(wire, behaviour, [body[: len(body) // 2], body[len(body) // 2 :]], "application/json", 1)
        elif behaviour.name == "byte_by_byte":
            await self._stream(wire, behaviour, [body], "application/json")
        else:
            await wire.whole(200, body, {"content-type": "application/json"}, gzipped=behaviour.name == "gzip")

    async def _stream(
        self,
        wire: Wire,
        behaviour: Behaviour,
        frames: Sequence[bytes],
        content_type: str | None = None,
        after_frames: int | None = None,
    ) -> None:
        stops = behaviour.name in {"cut", "hang_mid_stream", "error_in_stream"}
        count = behaviour.after_frames if after_frames is None else after_frames
        sent = frames[:count] if stops else frames
        await wire.begin(
            200, {"content-type": content_type or self._shape.stream_type}, gzipped=behaviour.name == "gzip"
        )
        for index, frame in enumerate(sent):
            if index and behaviour.between_seconds and await wire.gone_within(behaviour.between_seconds):
                return
            await wire.more(frame, byte_by_byte=behaviour.name == "byte_by_byte")
        match behaviour.name:
            case "hang_mid_stream":
                await wire.gone_within(behaviour.max_seconds)
                await wire.abort()
            case "cut" if not behaviour.clean:
                await wire.abort()
            case "error_in_stream":
                await wire.more(self._shape.error_frame(behaviour.status or 529))
                await wire.end()
            case _:
                await wire.end()

    async def _refuse(self, wire: Wire, behaviour: Behaviour) -> None:
        if behaviour.retry_after is not None:
            wire.add({"retry-after": behaviour.retry_after})
        await self._error(
            wire, behaviour.status or 429, "The demo provider refuses, as it was told to.", behaviour.code
        )

    async def _error(self, wire: Wire, status: int, message: str, code: str | None = None) -> None:
        await wire.whole(status, self._shape.error(status, message, code), {"content-type": "application/json"})

    def _seen(self, request: Request, number: int, behaviour: str, key: str) -> Call:
        return Call(
            id=number,
            path=request.url.path,
            behaviour=behaviour,
            key_matches=None if self._expected_key is None else _equal(key, self._expected_key),
            header_names=tuple(sorted(request.headers.keys())),
            accept_encoding=request.headers.get("accept-encoding"),
        )

    def _worked(self, request: Request, number: int, behaviour: str, key: str, work: Work, *, billed: int) -> Call:
        return replace(
            self._seen(request, number, behaviour, key),
            field_names=work.field_names,
            model=work.model,
            stream=work.stream,
            output_cap=work.output_cap,
            input_tokens=work.input_tokens,
            output_tokens=work.output_tokens,
            billed_picodollars=billed,
        )


def _key_of(headers: Mapping[str, str]) -> str:
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    names = ("x-api-key", "api-key", "x-goog-api-key")
    return bearer or next((headers[name] for name in names if name in headers), "")


def _equal(key: str, expected: str) -> bool:
    return hmac.compare_digest(key.encode(), expected.encode())
