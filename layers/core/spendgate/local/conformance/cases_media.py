"""Cases of media, and of tokens that are billed and not shown."""

from typing import Any, Final

from spendgate.local.conformance.bill import Terms
from spendgate.local.conformance.case import Case, Stand
from spendgate.local.conformance.dense import LONG, PIXEL
from spendgate.local.conformance.manner import Manner


def _parts(*parts: dict[str, Any]) -> Any:
    def play(stand: Stand) -> None:
        content = [{"type": "text", "text": "what is this?"}, *parts]
        stand.spend(stand.body(messages=[{"role": "user", "content": content}]), most=20)

    return play


def _hidden(stand: Stand) -> None:
    stand.spend(stand.body(max_tokens=None, max_completion_tokens=1000, stream=True), most=20)


def _cached(stand: Stand) -> None:
    part = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}
    stand.spend(stand.body(messages=[{"role": "user", "content": [part]}]), most=20)


CASES: Final = (
    Case(
        name="image by address",
        group="media and hidden tokens",
        title="an image of 1105 tokens behind a short URL",
        play=_parts({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}}),
        limit="0.04",
        sends=False,
    ),
    Case(
        name="image in the body",
        group="media and hidden tokens",
        title="an image of 1105 tokens in a hundred bytes of base64",
        play=_parts({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "high"}}),
        limit="0.04",
        sends=False,
    ),
    Case(
        name="sound",
        group="media and hidden tokens",
        title="a sound of 3000 tokens in a hundred bytes of base64",
        play=_parts({"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}}),
        limit="0.08",
        sends=False,
    ),
    Case(
        name="file",
        group="media and hidden tokens",
        title="a file of 3000 tokens in a hundred bytes of base64",
        play=_parts(
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"}}
        ),
        limit="0.08",
        sends=False,
    ),
    Case(
        name="reasoning unseen",
        group="media and hidden tokens",
        title="1000 tokens billed and one shown, with the usage in the stream",
        play=_hidden,
        limit="0.045",
        terms=Terms(to_the_cap=True, hidden=True),
    ),
    Case(
        name="reasoning unseen and unsaid",
        group="media and hidden tokens",
        title="1000 tokens billed and one shown, in a stream without usage",
        play=_hidden,
        limit="0.045",
        terms=Terms(to_the_cap=True, hidden=True),
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="write to the cache",
        group="media and hidden tokens",
        title="2000 tokens written to Anthropic's cache, counted beside the input and dearer than it",
        play=_cached,
        limit="0.205",
        dialect="anthropic",
        terms=Terms(cached=True),
    ),
)
