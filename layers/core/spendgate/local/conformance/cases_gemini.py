"""Cases of Gemini's protocol: where its wire differs from the others', a gateway can be wrong there."""

import json
from collections.abc import Callable
from typing import Any, Final

from spendgate.core.money import Picodollars
from spendgate.local.conformance import plays
from spendgate.local.conformance.bill import Terms
from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.dense import LONG, PIXEL, SYMBOLS
from spendgate.local.conformance.driver import RATE, Caller, Model
from spendgate.local.conformance.manner import Manner
from spendgate.local.conformance.speech import GEMINI_ARRAY, GEMINI_EVENTS

GROUP: Final = "gemini protocol"
_CHEAP_CACHE: Final = (Model(cached=Picodollars(RATE // 10)),)
# Actions and paths of the same host, each billed there.
_OTHER_PATHS: Final = (
    "/v1beta/models/{model}:predict",
    "/v1beta/models/{model}:batchGenerateContent",
    "/v1beta/models/{model}:predictLongRunning",
    "/v1beta/tunedModels/{model}:generateContent",
    "/v1beta/cachedContents",
    "/v1beta/interactions",
    "/v1beta/openai/images/generations",
    "/v1beta//models/{model}:predict",
)


def _said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "parts": [{"text": text}]}]


def _streams(template: str, **fields: Any) -> Callable[[Stand], None]:
    def play(stand: Stand) -> None:
        stand.spend(stand.body(**fields), path=stand.path(template), most=24)

    return play


def _two_spellings(stand: Stand) -> None:
    small, large = {"maxOutputTokens": 10}, {"max_output_tokens": 1500}
    for fields in (
        {"generationConfig": small | large},
        {"generationConfig": large | small},
        {"generationConfig": small, "generation_config": large},
        {"generationConfig": None, "generation_config": {"candidate_count": 8, "candidateCount": 1} | large},
    ):
        stand.spend(stand.body(**fields), most=8)


def _system(stand: Stand) -> None:
    stand.spend(stand.body(systemInstruction={"parts": [{"text": SYMBOLS}]}), most=12)
    declared = {"name": "f", "parameters": {"type": "OBJECT", "properties": {}, "title": SYMBOLS}}
    stand.spend(stand.body(tools=[{"functionDeclarations": [declared]}]), most=12)


def _tool_prompts(stand: Stand) -> None:
    declared = {"name": "f", "description": LONG[:4000]}
    stand.spend(stand.body(tools=[{"functionDeclarations": [declared]}]), most=20)


def _media(stand: Stand) -> None:
    for part in (
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a.pdf"}},
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"inline_data": {"mime_type": "audio/wav", "data": PIXEL}},
    ):
        contents = [{"role": "user", "parts": [{"text": "what is this?"}, part]}]
        stand.spend(stand.body(contents=contents), most=12)


def _kept(stand: Stand) -> None:
    for name in ("cachedContent", "cached_content"):
        stand.spend(stand.body(**{name: "cachedContents/1"}), most=12)


def _keys(stand: Stand) -> None:
    """A key counts wherever Google's clients put it, and is nobody's but the gateway's."""
    key = stand.provider.watched_for = stand.session.callers[0].key
    nobody = Caller(key="")
    good = [
        stand.call(caller=nobody, path=f"{stand.path()}?key={key}"),
        stand.call(caller=nobody, headers={"x-goog-api-key": key}),
    ]
    sent = stand.provider.hits
    if not all(answer.served for answer in good):
        raise Missed(f"a good key is refused in one of its places: {[answer.status for answer in good]}")
    for bad in ("", "sg-" + "0" * 40, f"{key}x"):
        stand.call(caller=nobody, path=f"{stand.path()}?key={bad}")
        stand.call(caller=nobody, headers={"x-goog-api-key": bad})
    if stand.provider.hits > sent:
        raise Missed(
            f"{stand.provider.hits - sent} of 6 calls without a key of the gateway's were sent to the provider"
        )
    if any(one.watched for one in stand.provider.arrivals):
        raise Missed("the caller's key was passed on to the provider")


def _side_doors(stand: Stand) -> None:
    for template in _OTHER_PATHS:
        for _ in range(2):
            stand.call(path=stand.path(template))


def _refusal(stand: Stand) -> None:
    stand.spend()
    before = stand.provider.hits
    answer = stand.call(path=stand.path(GEMINI_EVENTS))
    if stand.provider.hits > before:
        raise Missed("a call beyond the limit was sent to the provider")
    try:
        error = json.loads(answer.text)["error"]
        code, status, message = error["code"], error["status"], error["message"]
    except (ValueError, KeyError, TypeError):
        raise Missed(f"the refusal is not in the dialect's shape: {answer.status} {answer.text[:100]}") from None
    stand.remarks.append(f"{answer.status} {status}: {message}")
    if code != answer.status:
        raise Missed(f"the refusal's code is {code} and its status {answer.status}")


CASES: Final = (
    Case(
        name="gemini: no cap",
        group=GROUP,
        title="no maxOutputTokens, and the model writes 4096",
        play=plays.asking(generationConfig=None),
        limit="0.06",
        dialect="gemini",
        terms=Terms(to_the_cap=True),
    ),
    Case(
        name="gemini: eight candidates",
        group=GROUP,
        title="candidateCount 8, each billed",
        play=plays.asking(generationConfig={"maxOutputTokens": 100, "candidateCount": 8}),
        limit="0.02",
        dialect="gemini",
    ),
    Case(
        name="gemini: two spellings",
        group=GROUP,
        title="maxOutputTokens 10 and max_output_tokens 1500, generationConfig and generation_config: the larger counts",
        play=_two_spellings,
        limit="0.04",
        dialect="gemini",
        terms=Terms(to_the_cap=True),
        sends=False,
    ),
    Case(
        name="gemini: thoughts",
        group=GROUP,
        title="1000 tokens billed and one shown, in a stream: its thoughtsTokenCount is beside the candidates'",
        play=_streams(GEMINI_EVENTS, generationConfig={"maxOutputTokens": 1000}),
        limit="0.045",
        dialect="gemini",
        terms=Terms(to_the_cap=True, hidden=True),
    ),
    Case(
        name="gemini: prompts of tools",
        group=GROUP,
        title="1000 tokens of a tool, told in toolUsePromptTokenCount beside the prompt",
        play=_tool_prompts,
        limit="0.1",
        dialect="gemini",
        terms=Terms(tools_beside=True),
    ),
    Case(
        name="gemini: read from the cache",
        group=GROUP,
        title="2000 tokens read from the cache at a tenth: its cachedContentTokenCount is part of the prompt",
        play=plays.exactly(plays.asking(contents=_said(LONG))),
        limit="0.205",
        dialect="gemini",
        models=_CHEAP_CACHE,
        terms=Terms(from_cache=True),
    ),
    Case(
        name="gemini: system instruction",
        group=GROUP,
        title="two kilobytes in systemInstruction, then in a function's parameters, a token a byte",
        play=_system,
        limit="0.12",
        dialect="gemini",
        terms=Terms(bytes_a_token=1),
    ),
    Case(
        name="gemini: media",
        group=GROUP,
        title="a file of 3000 tokens by its address, an image of 1105 and a sound of 3000 in a hundred bytes",
        play=_media,
        limit="0.08",
        dialect="gemini",
        sends=False,
    ),
    Case(
        name="gemini: what the server keeps",
        group=GROUP,
        title="cachedContent, in both spellings: 3000 tokens that are not in the request",
        play=_kept,
        limit="0.08",
        dialect="gemini",
        sends=False,
    ),
    Case(
        name="gemini: usage on each chunk",
        group=GROUP,
        title="each chunk says the total so far: the last counts, not the sum",
        play=plays.exactly(_streams(GEMINI_EVENTS)),
        dialect="gemini",
        manner=Manner(each_frame=True),
    ),
    Case(
        name="gemini: no finishReason",
        group=GROUP,
        title="the stream ends in order after three chunks with the usage so far; the whole is billed",
        play=_streams(GEMINI_EVENTS),
        dialect="gemini",
        manner=Manner(name="ends_early", each_frame=True),
    ),
    Case(
        name="gemini: stream cut",
        group=GROUP,
        title="the connection breaks after three chunks that told the prompt only; the whole is billed",
        play=_streams(GEMINI_EVENTS),
        dialect="gemini",
        manner=Manner(name="cut"),
    ),
    Case(
        name="gemini: stream without usage",
        group=GROUP,
        title="no chunk of a stream has usageMetadata",
        play=_streams(GEMINI_EVENTS),
        dialect="gemini",
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="gemini: as one array",
        group=GROUP,
        title="a stream without alt=sse, which is one JSON array: its last element has the usage",
        play=plays.exactly(_streams(GEMINI_ARRAY)),
        dialect="gemini",
    ),
    Case(
        name="gemini: keys",
        group=GROUP,
        title="a key in ?key= and in x-goog-api-key: counts in both, invented in neither, and never reaches the provider",
        play=_keys,
        dialect="gemini",
    ),
    Case(
        name="gemini: side doors",
        group=GROUP,
        title="eight other actions and paths that a provider bills, with a good key",
        play=_side_doors,
        limit="0.05",
        dialect="gemini",
        sends=False,
    ),
    Case(
        name="gemini: what a refusal says",
        group=GROUP,
        title="a refused stream is an error in the dialect's shape",
        play=_refusal,
        dialect="gemini",
    ),
)
