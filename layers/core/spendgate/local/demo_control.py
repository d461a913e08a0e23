"""The demo provider's free endpoints: counting tokens, telling what arrived, being told how to behave."""

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spendgate.local.demo_book import DemoBook, behaviour_from
from spendgate.local.demo_gemini import GEMINI
from spendgate.local.demo_shapes import MESSAGES
from spendgate.local.demo_work import RequestUnreadable, work_of

BODY_BYTES_MAX: Final = 64 * 2**20


async def count_tokens(request: Request) -> Response:
    """Answer Anthropic's count_tokens."""
    book: DemoBook = request.app.state.book
    book.free_hits += 1
    try:
        work = work_of("anthropic", await body_of(request))
    except RequestUnreadable as problem:
        return Response(MESSAGES.error(400, str(problem), None), 400, media_type="application/json")
    return JSONResponse({"input_tokens": work.input_tokens})


async def count_gemini_tokens(request: Request) -> Response:
    """Answer Gemini's countTokens."""
    book: DemoBook = request.app.state.book
    book.free_hits += 1
    try:
        work = GEMINI.read(await body_of(request), request.path_params)
    except RequestUnreadable as problem:
        return Response(GEMINI.error(400, str(problem), None), 400, media_type="application/json")
    return JSONResponse({"totalTokens": work.input_tokens})


async def show(request: Request) -> Response:
    """Tell what arrived and what was billed."""
    book: DemoBook = request.app.state.book
    return JSONResponse(book.as_json())


async def tell(request: Request) -> Response:
    """Be told how to behave."""
    book: DemoBook = request.app.state.book
    try:
        behaviour, calls = behaviour_from(await request.json())
    except (ValueError, TypeError) as problem:
        return JSONResponse({"error": str(problem)}, 400)
    book.behave(behaviour, calls=calls)
    return JSONResponse({"behaviour": behaviour.name, "calls": calls})


async def forget(request: Request) -> Response:
    """Forget every call and behaviour."""
    book: DemoBook = request.app.state.book
    book.reset()
    return JSONResponse(book.as_json())


async def body_of(request: Request) -> bytes:
    """Read a request's body, up to its limit."""
    if request.method == "GET":
        # A redirect by 302 becomes a GET without a body; that it came is what counts.
        return b'{"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": ""}]}'
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise RequestUnreadable("the body is larger than 64 MiB")
    return bytes(body)
