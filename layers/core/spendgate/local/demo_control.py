"""The demo provider's free endpoints: counting tokens, telling what arrived, being told how to behave."""

import json
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spendgate.core.money import usd_text
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


async def generation(request: Request) -> Response:
    """Tell what a call cost, as OpenRouter does, by the id in its answer."""
    book: DemoBook = request.app.state.book
    response_id = request.query_params.get("id", "")
    call = next((one for one in book.calls if response_id == f"chatcmpl-demo-{one.id}"), None)
    if call is None:
        return JSONResponse({"error": {"code": 404, "message": "There is no such generation."}}, status_code=404)
    data = {
        "id": response_id,
        "model": call.model,
        "is_byok": False,
        "native_tokens_prompt": call.input_tokens,
        "native_tokens_completion": call.output_tokens,
    }
    # Money is never a float: its exact digits are put into the text.
    text = json.dumps({"data": data | {"total_cost": "COST"}}).replace('"COST"', usd_text(call.billed_picodollars))
    return Response(text, media_type="application/json")


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
