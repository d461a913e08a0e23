"""The requests that coding agents send by default, recorded by ``python -m tools.agents`` and replayed here.

Their texts are gone: ``~N`` stands for a text of N characters, ``~N+M`` for one with M more that are not ASCII.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.gateway.stand import Stand, facts

RECORDS: Final = Path(__file__).parents[1] / "recorded" / "agents"
ROOMY: Final = "$: {limits: {usd: {day: 50}}}"
# The names that the programs ask for.
ROUTES: Final = """\
  claude-opus-4-8: [{provider: claude-host, model: demo}]
  claude-sonnet-5: [{provider: claude-host, model: demo}]
  gpt-5.6-sol: [{provider: gpt-host, model: demo}]
  gpt-5.5: [{provider: gpt-host, model: demo}]
  gemini-3-flash: [{provider: gemini-host, model: demo}]
"""
_FILLER: Final = re.compile(r"~(\d+)(?:\+(\d+))?")
_WORDS: Final = "The quick brown fox jumps over the lazy dog, and says so. "


def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def filled(value: Any) -> Any:
    """Return a body with filler where its texts were."""
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item) for item in value]
    named = _FILLER.fullmatch(value) if isinstance(value, str) else None
    if named is None:
        return value
    size = int(named[1])
    return (_WORDS * (size // len(_WORDS) + 1))[:size] + "\u2014" * int(named[2] or 0)


def replay(stand: Stand, key: str, request: dict[str, Any], **headers: str) -> httpx.Response:
    target = f"{request['path']}?{request['query']}" if request["query"] else request["path"]
    return stand.post(target, filled(request["body"]), key, headers=request["headers"] | headers)


NAMES: Final = sorted(file.stem for file in RECORDS.glob("*.json"))
REFUSED: Final = [name for name in NAMES if record(name)["refused_with"] is not None]
ADMITTED: Final = [name for name in NAMES if name not in REFUSED]


def test_there_are_records_of_every_program() -> None:
    assert {record(name)["program"] for name in ADMITTED} == {
        "@anthropic-ai/claude-code",
        "@openai/codex",
        "opencode-ai",
    }


@pytest.mark.parametrize("name", ADMITTED)
def test_every_request_of_a_default_turn_is_admitted_once_and_settled(stand: Stand, name: str) -> None:
    requests = record(name)["requests"]
    key = stand.open(ROOMY, routes=ROUTES)

    answers = [replay(stand, key, request) for request in requests]

    assert [answer.status_code for answer in answers] == [200] * len(requests)
    assert stand.hits == len(requests) > 0
    stand.audited()
    assert {one.state for one in stand.reservations()} == {"settled"}
    assert sum(one.actual.usd for one in stand.reservations() if one.actual) == stand.book.billed_picodollars


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_default_turn_cannot_have_is_refused_with_the_setting_that_turns_it_off(stand: Stand, name: str) -> None:
    found = record(name)
    key = stand.open(ROOMY, routes=ROUTES)

    answer = replay(stand, key, found["requests"][0])

    assert answer.status_code == 402
    assert found["refused_with"] in facts(answer)["message"]
    assert (stand.hits, stand.reservations()) == (0, ())


def test_the_search_that_codex_offers_is_admitted_where_it_is_allowed(stand: Stand) -> None:
    requests = record("codex-web-search")["requests"]
    budget = "$: {limits: {usd: {day: 50}}, allow: {web_search: 2}}"
    key = stand.open(budget, routes="  gpt-5.5: [{provider: searching-host, model: demo}]\n")

    answers = [replay(stand, key, request) for request in requests]

    assert [answer.status_code for answer in answers] == [200] * len(requests)
    assert {answer.headers["x-spendgate-tool-call-cap"] for answer in answers} == {"2"}
    assert stand.hits == len(requests)
    for one in stand.reservations():
        assert one.state == "settled"
        assert one.usage is not None
        # It may find images too, and the answer does not say what each search was.
        assert one.usage.fees == (("web_search", 4),)
    stand.audited()


def test_a_beta_that_nobody_knows_is_refused_with_the_setting_that_turns_betas_off(stand: Stand) -> None:
    (request,) = record("claude-code")["requests"]
    betas = f"{request['headers']['anthropic-beta']},new-thing-2027-01-01"
    key = stand.open(ROOMY, routes=ROUTES)

    answer = replay(stand, key, request, **{"anthropic-beta": betas})

    assert answer.status_code == 402
    assert "new-thing-2027-01-01" in facts(answer)["message"]
    assert "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1" in facts(answer)["message"]
    assert stand.hits == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_record_has_no_texts_and_says_nothing_of_a_machine(name: str) -> None:
    found = record(name)

    assert found["version"]
    assert found["recorded"] >= "2026-11-30"
    for request in found["requests"]:
        assert "authorization" not in request["headers"]
        assert all(len(text) <= 60 for text in strings(request["body"]))
        assert not any(re.search(r"/(root|home|tmp|work)\b|\bsg-", text) for text in strings(request))


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []
