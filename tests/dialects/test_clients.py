"""What the official clients really send is read, with their own answers sent back whole."""

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel

from spendgate.dialects.dialect import Dialect, Request
from spendgate.dialects.json_strict import parse_object
from spendgate.dialects.registry import DIALECTS

CALL = {"id": "call_1", "type": "function", "function": {"name": "Town", "arguments": '{"name":"Ulm"}'}}
CHAT_ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": [CALL]},
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
MESSAGE_ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "x", "citations": None},
        {"type": "tool_use", "id": "t1", "name": "town", "input": {"name": "Ulm"}, "caller": {"type": "direct"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


class Town(BaseModel):
    name: str
    rivers: list[str] = []


class Recorder:
    """Answers the clients, and reads every request of theirs with a dialect."""

    def __init__(self, dialect: Dialect, answer: dict[str, Any]) -> None:
        self.read: list[Request] = []
        self._dialect = dialect
        self._answer = answer
        self.transport = httpx2.Client(transport=httpx2.MockTransport(self._handle))

    def _handle(self, request: httpx2.Request) -> httpx2.Response:
        body = parse_object(request.content, content_encoding=request.headers.get("content-encoding"))
        self.read.append(self._dialect.read(body, dict(request.headers), request.url.query.decode()))
        return httpx2.Response(200, json=self._answer)


def test_a_tool_loop_of_openais_client_is_read() -> None:
    recorder = Recorder(DIALECTS["openai"], CHAT_ANSWER)
    client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=recorder.transport)
    tools = [openai.pydantic_function_tool(Town)]

    first = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], tools=tools)
    client.chat.completions.create(
        model="m",
        messages=[
            {"role": "user", "content": "x"},
            first.choices[0].message,  # type: ignore[list-item]  # As most programs do; the client takes it.
            {"role": "tool", "tool_call_id": "call_1", "content": "1"},
        ],
        tools=tools,
        max_completion_tokens=9,
    )

    facts = [request.facts for request in recorder.read]
    assert [(fact.tools, fact.tool_results, fact.output_cap) for fact in facts] == [(1, 0, None), (1, 1, 9)]


def test_a_structured_output_of_openais_client_is_read() -> None:
    recorder = Recorder(DIALECTS["openai"], CHAT_ANSWER)
    client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=recorder.transport)

    client.chat.completions.parse(model="m", messages=[{"role": "user", "content": "x"}], response_format=Town)

    assert recorder.read[0].facts.structured


def plain(client: anthropic.Anthropic, **call: Any) -> Any:
    return client.messages.create(**call)


def beta(client: anthropic.Anthropic, **call: Any) -> Any:
    return client.beta.messages.create(**call, betas=["interleaved-thinking-2025-05-14"])


@pytest.mark.parametrize("create", [plain, beta])
def test_a_tool_loop_of_anthropics_client_is_read(create: Callable[..., Any]) -> None:
    recorder = Recorder(DIALECTS["anthropic"], MESSAGE_ANSWER)
    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1", http_client=recorder.transport)
    call: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "tools": [{"name": "town", "input_schema": Town.model_json_schema()}],
    }

    first = create(client, messages=[{"role": "user", "content": "x"}], **call)
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "1"}
    again = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    create(client, messages=again, **call)

    assert [request.facts.tool_results for request in recorder.read] == [0, 1]
    assert dict(recorder.read[1].headers)["anthropic-version"]


def test_a_structured_output_of_anthropics_client_is_read() -> None:
    recorder = Recorder(
        DIALECTS["anthropic"], MESSAGE_ANSWER | {"content": [{"type": "text", "text": '{"name": "Ulm"}'}]}
    )
    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1", http_client=recorder.transport)

    client.messages.parse(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}], output_format=Town)

    assert recorder.read[0].facts.structured
