"""LangChain's own classes, with nothing but a base URL and a key changed: chat, streams, tools, structured output, embeddings."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, SecretStr

from tests.gateway.stand import Stand

ROOMY: Final = "$: {limits: {usd: {day: 20}}}"


class Weather(BaseModel):
    """The weather of a city."""

    city: str


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


def chat(stand: Stand, key: str, **options: Any) -> BaseChatModel:
    return ChatOpenAI(model="gpt", base_url=f"{stand.url}/v1", api_key=SecretStr(key), max_retries=0, **options)


def responses(stand: Stand, key: str) -> BaseChatModel:
    return chat(stand, key, use_responses_api=True)


def messages(stand: Stand, key: str) -> BaseChatModel:
    options: dict[str, Any] = {"model": "claude", "base_url": stand.url, "api_key": key, "max_retries": 0}
    return ChatAnthropic(**options)


def gemini(stand: Stand, key: str) -> BaseChatModel:
    return ChatGoogleGenerativeAI(model="gemini", base_url=stand.url, api_key=SecretStr(key), max_retries=1)


Model = Callable[[Stand, str], BaseChatModel]
MODELS: Final[list[Model]] = [chat, responses, messages, gemini]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no setting of this machine, and no tracing, take part."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


def settled_as_billed(stand: Stand, *, calls: int) -> None:
    stand.audited()
    found = stand.reservations()
    assert [one.state for one in found] == ["settled"] * calls
    assert stand.hits == calls
    assert sum(one.actual.usd for one in found if one.actual) == stand.book.billed_picodollars > 0


@every_model
def test_a_chat_is_answered_with_its_usage(stand: Stand, model: Model) -> None:
    asked: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Hello")]

    answer = model(stand, stand.open(ROOMY)).invoke(asked)

    assert isinstance(answer, AIMessage)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] == 24
    settled_as_billed(stand, calls=1)


@every_model
def test_a_stream_comes_in_pieces(stand: Stand, model: Model) -> None:
    pieces = list(model(stand, stand.open(ROOMY)).stream("Hello"))

    assert len(pieces) > 3
    assert "demo provider" in "".join(piece.text for piece in pieces)
    settled_as_billed(stand, calls=1)


@every_model
def test_a_tool_is_called_and_its_result_comes_back(stand: Stand, model: Model) -> None:
    bound = model(stand, stand.open(ROOMY)).bind_tools([weather])
    said: list[BaseMessage] = [HumanMessage("Use the tool.")]

    first = bound.invoke(said)
    assert isinstance(first, AIMessage)
    (call,) = first.tool_calls
    result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"], name=call["name"])
    second = bound.invoke([*said, first, result])

    assert isinstance(second, AIMessage)
    assert second.tool_calls == []
    assert [one.asked.tool_calls for one in stand.reservations()] == [0, 1]
    settled_as_billed(stand, calls=2)


@every_model
def test_structured_output_by_a_function_is_an_object(stand: Stand, model: Model) -> None:
    structured = model(stand, stand.open(ROOMY)).with_structured_output(Weather, method="function_calling")

    assert isinstance(structured.invoke("Use the tool."), Weather)
    settled_as_billed(stand, calls=1)


@pytest.mark.parametrize("model", [messages, gemini], ids=lambda model: model.__name__)
def test_structured_output_by_a_schema_is_bounded_and_settled(stand: Stand, model: Model) -> None:
    options: dict[str, Any] = {"method": "json_schema", "include_raw": True}
    structured = model(stand, stand.open(ROOMY)).with_structured_output(Weather, **options)

    # The demo provider does not speak JSON, which is told beside the answer.
    answer = structured.invoke("Hello")

    assert isinstance(answer, dict)
    assert isinstance(answer["raw"], AIMessage)
    settled_as_billed(stand, calls=1)


def test_texts_are_embedded(stand: Stand) -> None:
    # Cut by the server: the tokenizer's vocabulary would be downloaded.
    embeddings = OpenAIEmbeddings(
        model="gpt",
        base_url=f"{stand.url}/v1",
        api_key=SecretStr(stand.open(ROOMY)),
        check_embedding_ctx_length=False,
        max_retries=0,
    )

    assert len(embeddings.embed_documents(["one", "two"])) == 2
    settled_as_billed(stand, calls=1)
