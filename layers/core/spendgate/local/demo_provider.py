"""A provider that costs nothing: every dialect, whole and streamed, billing by a rule that anyone can check.

**What it bills.** With n messages (a system prompt counts as one):

    input tokens  = 4 n + ceil(b / 4), where b is the UTF-8 bytes of every text under ``messages`` and ``system``
                    (roles, types and ids left out) and of ``tools`` and ``response_format`` as compact JSON
    output tokens = min(output cap, wanted) for each choice, where wanted is N of the last ``[[output:N]]`` in the
                    last user message, else 12 n
    bill          = input tokens x input rate + output tokens x output rate; 2.50 and 10 USD per million tokens
                    unless told otherwise, in whole picodollars

OpenAI's Responses are read the same way: an item of the input is a message, ``instructions`` is the system prompt,
``text.format`` the response format. So are completions, where each prompt is a message, a token id counts as four bytes,
the cap is 16 unless told otherwise, and a choice is each of ``n`` or ``best_of`` for each prompt; and embeddings, where each
input is a message and nothing is put out. Bedrock's Converse, and Claude there by InvokeModel, are read as messages too.

It answers with as many words as it bills output tokens. Given tools, and a last user message with the word "tool"
that is no tool result, it calls the first tool. It bills when a request has been read, before it answers; a caller
that goes away does not take that back. Counting tokens is free, and so is asking what a chat completion has cost, as at
OpenRouter: ``GET /v1/generation?id=``.

**How it behaves.** ``GET /_demo`` tells what arrived and what was billed, ``POST /_demo`` with ``{"behaviour": NAME,
"calls": N, ...options}`` how the next N calls go (without a number: all that follow), ``DELETE /_demo`` forgets
everything. ``[[behaviour:NAME]]`` in the last user message does it for that one call. The names and options are those
of ``spendgate.local.demo_book``. Nothing holds a connection for longer than ten minutes.

``python -m spendgate.local.demo_provider`` prints ``{"url": ...}`` when it is ready and ends with its standard input.
"""

import argparse
import asyncio
import hmac
import json
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from spendgate.core.money import Picodollars, rate_per_million
from spendgate.local.demo_bedrock import SHAPES as BEDROCK
from spendgate.local.demo_book import BEHAVIOURS, OK, Behaviour, Call, DemoBook
from spendgate.local.demo_control import body_of, count_gemini_tokens, count_tokens, forget, generation, show, tell
from spendgate.local.demo_gemini import ARRAY, BATCH, EMBEDDING, EVENTS, GEMINI, ByQuery
from spendgate.local.demo_openai import COMPLETIONS, EMBEDDINGS, RESPONSES
from spendgate.local.demo_shapes import CHAT, MESSAGES, Reply, Shape
from spendgate.local.demo_wire import Wire
from spendgate.local.demo_work import SEARCH_FEE, RequestUnreadable, Work
from spendgate.local.serving import served

INPUT_RATE: Final = rate_per_million("2.50")
OUTPUT_RATE: Final = rate_per_million("10")
_SHAPES: Final[Mapping[str, Shape]] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/embeddings": EMBEDDINGS,
    "/v1/completions": COMPLETIONS,
    "/v1/messages": MESSAGES,
    **BEDROCK,
}
_REDIRECTED: Final = "/redirected"
_UNBILLED: Final = frozenset({"refuse", "redirect"})


def create_app(
    *,
    expected_key: str | None = None,
    input_rate: Picodollars = INPUT_RATE,
    output_rate: Picodollars = OUTPUT_RATE,
    book: DemoBook | None = None,
) -> Starlette:
    """Make the provider; with ``expected_key`` it refuses every other key. Its book is also ``app.state.book``."""
    book = DemoBook() if book is None else book
    rates = (input_rate, output_rate)
    calls = {path: _Calls(shape, book, rates, expected_key) for path, shape in _SHAPES.items()}
    gemini = _Calls(GEMINI, book, rates, expected_key)
    streamed = ByQuery(*(_Calls(shape, book, rates, expected_key) for shape in (EVENTS, ARRAY)))
    app = Starlette(
        routes=[
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in calls.items()),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
            Route("/v1beta/models/{model}:generateContent", gemini, methods=["POST"]),
            Route("/v1beta/models/{model}:streamGenerateContent", streamed, methods=["POST"]),
            *(
                Route(f"/v1beta/models/{{model}}:{action}", _Calls(shape, book, rates, expected_key), methods=["POST"])
                for action, shape in (("embedContent", EMBEDDING), ("batchEmbedContents", BATCH))
            ),
            Route("/v1beta/models/{model}:countTokens", count_gemini_tokens, methods=["POST"]),
            # Where the behaviour "redirect" points: a redirect that is followed is seen, and billed.
            *(Route(_REDIRECTED + path, endpoint, methods=["GET", "POST"]) for path, endpoint in calls.items()),
            Route(_REDIRECTED + "/v1beta/models/{model}:generateContent", gemini, methods=["POST"]),
            Route("/v1/generation", generation, methods=["GET"]),
            Route("/_demo", show, methods=["GET"]),
            Route("/_demo", tell, methods=["POST"]),
            Route("/_demo", forget, methods=["DELETE"]),
        ]
    )
    app.state.book = book
    return app


class _Calls:
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
            number, behaviour = self._book.arrived(told=not request.url.path.startswith(_REDIRECTED))
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
                await wire.whole(behaviour.status or 307, b"", {"location": f"{_REDIRECTED}{request.url.path}"})
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


async def _main(arguments: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    threading.Thread(target=_until_input_ends, args=(loop, over), daemon=True).start()
    async with served(create_app(expected_key=arguments.expected_key), port=arguments.port) as url:
        print(json.dumps({"url": url}), flush=True)  # noqa: T201 - the one line by which a parent finds it
        await over.wait()


def _until_input_ends(loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    # By the bare file descriptor: sys.stdin's lock would be held while the interpreter shuts down.
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(over.set)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="demo_provider", description="A provider for trying things out.")
    parser.add_argument("--port", type=int, default=0, help="0 finds a free one")
    parser.add_argument("--expected-key", help="refuse every other key")
    asyncio.run(_main(parser.parse_args()))
