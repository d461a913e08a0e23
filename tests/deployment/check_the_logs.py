"""What the deployed functions have logged by now, in these checks and in all before: no key, no prompt, no completion.

Before the stack is updated and deleted, and after everything else, so that the logs of all of it are searched.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest
from openai import APIStatusError

from tests.deployment.proof import PROVIDER_KEY, Proof, until
from tests.deployment.stack import Stack

PROMPT: Final = "aQuestionThatNobodyElseMayRead"
# What the demo provider says, whatever it is asked.
COMPLETION: Final = "says what it is told"
NOT_A_KEY: Final = "sg-keyThatWasNeverMadeByAnybodyHere0000"
ASKED: Final[list[Any]] = [{"role": "user", "content": f"{PROMPT} [[output:20]]"}]


def test_no_key_no_prompt_and_no_completion_is_in_any_functions_log(proof: Proof) -> None:
    # A provider that puts the key that it was given into its answer; the gateway takes it out.
    proof.provider.behave("echo", calls=2)
    with proof.agent("logged") as client:
        whole = client.chat.completions.with_raw_response.create(model="demo", messages=ASKED, max_tokens=50)
        stream = client.chat.completions.with_raw_response.create(
            model="demo", messages=ASKED, max_tokens=50, stream=True
        )
        said = "".join(chunk.choices[0].delta.content or "" for chunk in stream.parse() if chunk.choices)
    assert COMPLETION in said
    assert said.endswith("[secret]")
    _refused(proof)
    reservations = [answer.headers["x-spendgate-reservation"] for answer in (whole, stream)]

    # What was logged last comes with the next call.
    until(lambda: _is_up(proof) and all(_is_in(one, _logged(proof.stack)) for one in reservations))
    logged = _logged(proof.stack)

    secret = {
        "a prompt": PROMPT,
        "a completion": COMPLETION,
        "the provider's key": PROVIDER_KEY,
        "what was no key": NOT_A_KEY,
        "the operator's own key": proof.operator.secret_key,
        "a secret that the gateway may not read": "not for the gateway",
    } | {f"the key of {name}": key for name, key in proof.keys.items()}
    assert [name for name, text in secret.items() if _is_in(text, logged)] == []


@pytest.mark.parametrize("before", ["", "1", "12", "123"])
def test_a_secret_is_found_however_an_event_or_a_body_would_have_been_logged(before: str) -> None:
    event = json.dumps({"body": base64.b64encode(f"{before}{PROMPT}.".encode()).decode()})

    assert _is_in(PROMPT, event)
    assert _is_in(PROMPT, json.dumps({"message": f"{before}{PROMPT}."}))
    assert not _is_in(PROMPT, json.dumps({"message": NOT_A_KEY}))


def _refused(proof: Proof) -> None:
    """Be refused at each stage with something in hand that must not be written down."""
    with proof.agent("full") as client, pytest.raises(APIStatusError, match="402"):
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=4000)
    body = {"model": "demo", "messages": ASKED, "max_tokens": 50, "no_such_field": PROMPT}
    key = proof.keys["logged"]
    statuses = [
        _posted(proof, "/v1/chat/completions", json.dumps(body), key),
        _posted(proof, "/v1/chat/completions", json.dumps(body)[:-1], key),
        _posted(proof, "/v1/chat/completions", json.dumps(body), NOT_A_KEY),
        _posted(proof, f"/v1beta/models/demo:generateContent?key={NOT_A_KEY}", json.dumps(body)),
        # An operator who takes a key for a key's name.
        proof.stack.call("POST", f"/admin/keys/{key}/revoke", {}, caller=proof.operator).status_code,
    ]
    assert [status for status in statuses if not 400 <= status < 500] == []


def _posted(proof: Proof, path: str, body: str, key: str | None = None) -> int:
    headers = {"content-type": "application/json"} | ({} if key is None else {"authorization": f"Bearer {key}"})
    with httpx.Client(trust_env=False, timeout=60) as client:
        return client.post(f"{proof.stack.url}{path}", content=body, headers=headers).status_code


def _is_up(proof: Proof) -> bool:
    return proof.stack.call("GET", "/healthz", caller=None).status_code == 200


def _logged(stack: Stack) -> str:
    """Return every line of every function."""
    logs = stack.emulator.client("logs")
    groups = [
        group["logGroupName"]
        for page in logs.get_paginator("describe_log_groups").paginate()
        for group in page["logGroups"]
    ]
    pages = (page for group in groups for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group))
    return "\n".join(event["message"] for page in pages for event in page["events"])


def _is_in(text: str, logged: str) -> bool:
    return any(form in logged for form in _forms(text))


def _forms(text: str) -> Iterator[str]:
    """Yield a text as it stands, and in base64, as an event has a body: by where it begins in three bytes, without its edges."""
    yield text
    for shift in range(3):
        encoded = base64.b64encode(b" " * shift + text.encode()).decode().rstrip("=")
        yield encoded[-(-shift * 4 // 3) : -1]
