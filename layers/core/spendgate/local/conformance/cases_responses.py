"""Cases of OpenAI's Responses: where its wire differs from that of chat completions, a gateway can be wrong there."""

from typing import Final

from spendgate.core.money import Picodollars
from spendgate.local.conformance import plays
from spendgate.local.conformance.bill import Terms
from spendgate.local.conformance.case import Case, Stand
from spendgate.local.conformance.dense import LONG, PIXEL, SYMBOLS
from spendgate.local.conformance.driver import RATE, Model
from spendgate.local.conformance.manner import Manner

GROUP: Final = "responses protocol"
_DIALECT: Final = "openai-responses"
_CHEAP_CACHE: Final = (Model(cached=Picodollars(RATE // 10)),)


def _endless_cap(stand: Stand) -> None:
    stand.burst([stand.body(max_output_tokens=2**62)] * 6)
    stand.spend(stand.body(max_output_tokens=2**31), most=20)


def _instructions(stand: Stand) -> None:
    stand.spend(stand.body(instructions=SYMBOLS), most=12)
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}, "title": SYMBOLS}}
    stand.spend(stand.body(tools=[tool]), most=12)


def _kept(stand: Stand) -> None:
    named = (
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
        {"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "hello"}]},
    )
    for fields in named:
        stand.spend(stand.body(**fields), most=8)


def _media(stand: Stand) -> None:
    data = f"data:image/png;base64,{PIXEL}"
    for part in (
        {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"},
        {"type": "input_image", "image_url": data, "detail": "high"},
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"},
    ):
        content = [{"type": "input_text", "text": "what is this?"}, part]
        stand.spend(stand.body(input=[{"role": "user", "content": content}]), most=12)


CASES: Final = (
    Case(
        name="responses: no cap",
        group=GROUP,
        title="no max_output_tokens, and the model writes 4096",
        play=plays.asking(max_output_tokens=None),
        limit="0.06",
        dialect=_DIALECT,
        terms=Terms(to_the_cap=True),
    ),
    Case(
        name="responses: an endless cap",
        group=GROUP,
        title="max_output_tokens 2^62 and 2^31, and the model writes 4096",
        play=_endless_cap,
        limit="0.06",
        dialect=_DIALECT,
        terms=Terms(to_the_cap=True),
        sends=False,
    ),
    Case(
        name="responses: reasoning",
        group=GROUP,
        title="1000 tokens billed and one shown, in a stream: its reasoning_tokens are part of the output",
        play=plays.exactly(plays.asking(max_output_tokens=1000, stream=True)),
        limit="0.045",
        dialect=_DIALECT,
        terms=Terms(to_the_cap=True, hidden=True),
    ),
    Case(
        name="responses: read from the cache",
        group=GROUP,
        title="2000 tokens read from the cache at a tenth: its cached_tokens are part of the input",
        play=plays.exactly(plays.asking(input=LONG)),
        limit="0.205",
        dialect=_DIALECT,
        models=_CHEAP_CACHE,
        terms=Terms(from_cache=True),
    ),
    Case(
        name="responses: instructions",
        group=GROUP,
        title="two kilobytes in instructions, then in a tool's parameters, a token a byte",
        play=_instructions,
        limit="0.12",
        dialect=_DIALECT,
        terms=Terms(bytes_a_token=1),
    ),
    Case(
        name="responses: what the server keeps",
        group=GROUP,
        title="previous_response_id, conversation, an item by its id: 3000 tokens that are not in the request",
        play=_kept,
        limit="0.08",
        dialect=_DIALECT,
        sends=False,
    ),
    Case(
        name="responses: media",
        group=GROUP,
        title="a file of 3000 tokens in a hundred bytes, an image of 1105 in the body and by address",
        play=_media,
        limit="0.08",
        dialect=_DIALECT,
        sends=False,
    ),
    Case(
        name="responses: stream without usage",
        group=GROUP,
        title="response.completed says null for the usage",
        play=plays.streamed,
        limit="0.02",
        dialect=_DIALECT,
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="responses: no last event",
        group=GROUP,
        title="the stream ends in order, and response.completed never came; the whole is billed",
        play=plays.streamed,
        limit="0.02",
        dialect=_DIALECT,
        manner=Manner(name="ends_early"),
    ),
)
