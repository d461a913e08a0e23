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
import json
import os
import signal
import threading
from collections.abc import Mapping
from typing import Final

from starlette.applications import Starlette
from starlette.routing import Route

from spendgate.core.money import Picodollars, rate_per_million
from spendgate.local.demo_bedrock import SHAPES as BEDROCK
from spendgate.local.demo_book import DemoBook
from spendgate.local.demo_calls import REDIRECTED, Calls
from spendgate.local.demo_control import count_gemini_tokens, count_tokens, forget, generation, show, tell
from spendgate.local.demo_gemini import ARRAY, BATCH, EMBEDDING, EVENTS, GEMINI, ByQuery
from spendgate.local.demo_openai import COMPLETIONS, EMBEDDINGS, RESPONSES
from spendgate.local.demo_shapes import CHAT, MESSAGES, Shape
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
    calls = {path: Calls(shape, book, rates, expected_key) for path, shape in _SHAPES.items()}
    gemini = Calls(GEMINI, book, rates, expected_key)
    streamed = ByQuery(*(Calls(shape, book, rates, expected_key) for shape in (EVENTS, ARRAY)))
    app = Starlette(
        routes=[
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in calls.items()),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
            Route("/v1beta/models/{model}:generateContent", gemini, methods=["POST"]),
            Route("/v1beta/models/{model}:streamGenerateContent", streamed, methods=["POST"]),
            *(
                Route(f"/v1beta/models/{{model}}:{action}", Calls(shape, book, rates, expected_key), methods=["POST"])
                for action, shape in (("embedContent", EMBEDDING), ("batchEmbedContents", BATCH))
            ),
            Route("/v1beta/models/{model}:countTokens", count_gemini_tokens, methods=["POST"]),
            # Where the behaviour "redirect" points: a redirect that is followed is seen, and billed.
            *(Route(REDIRECTED + path, endpoint, methods=["GET", "POST"]) for path, endpoint in calls.items()),
            Route(REDIRECTED + "/v1beta/models/{model}:generateContent", gemini, methods=["POST"]),
            Route("/v1/generation", generation, methods=["GET"]),
            Route("/_demo", show, methods=["GET"]),
            Route("/_demo", tell, methods=["POST"]),
            Route("/_demo", forget, methods=["DELETE"]),
        ]
    )
    app.state.book = book
    return app


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
