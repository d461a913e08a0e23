"""Any bytes whatever: a documented answer, no traceback, and no reservation that does not end."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.stand import Stand, chat, message

PATHS = {"/v1/chat/completions": chat(), "/v1/messages": message()}
EXAMPLES = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

RICH: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": chat(
        n=1,
        stop=["a"],
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        response_format={"type": "json_object"},
        stream=True,
        stream_options={"include_usage": True},
        metadata={"a": "b"},
    ),
    "/v1/messages": message(
        system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        tools=[{"name": "f", "input_schema": {"type": "object"}}],
        stop_sequences=["a"],
        thinking={"type": "enabled", "budget_tokens": 10},
        stream=True,
    ),
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1,
        2**53,
        10**400,
        1.5,
        -0.0,
        "",
        "a" * 3000,
        "\0",
        "\ud800",
        [],
        {},
        [[]],
        [{}],
        {"": {}},
    ]
) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for name, one in inner for place in places(one, (*at, name)))]


@st.composite
def mutated(draw: st.DrawFn, body: dict[str, Any]) -> bytes:
    """Return a valid body with some of its values exchanged, left out or added."""
    changed: Any = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(changed)))
        if not place:
            continue
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        match draw(st.sampled_from(["change", "drop", "add"])):
            case "drop":
                del holder[place[-1]]
            case "add" if isinstance(holder, dict):
                holder[draw(st.sampled_from(["stream", "n", "model", "max_tokens", "x", "content", "type"]))] = draw(
                    ODD
                )
            case _:
                holder[place[-1]] = copy.deepcopy(draw(ODD))
    # Half a surrogate pair is text that UTF-8 cannot hold; it goes out as its escape.
    return json.dumps(changed).encode()


def documented(stand: Stand, path: str, key: str, body: bytes) -> None:
    response = stand.post(path, body, key)
    assert response.status_code in {200, 400, 402, 403, 404, 429}, response.text
    if response.status_code != 200 and "x-spendgate-provider" not in response.headers:
        error = response.json()["error"]
        assert error["message"]
        code = error.get("details", error).get("error_code", error.get("code"))
        assert code in {
            "request_invalid",
            "cost_bound_unknown",
            "not_found",
            "request_too_expensive",
            "over_budget",
            "model_not_allowed",
        }
    assert "Traceback" not in stand.log.getvalue()
    made = response.headers.get("x-spendgate-reservation")
    if made is not None:
        stand.until(lambda: stand.reservation_of(made).state != "in_flight")


@pytest.mark.parametrize("path", PATHS)
def test_any_bytes_get_a_documented_answer_and_leave_nothing_in_flight(stand: Stand, path: str) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}")

    @EXAMPLES
    @given(body=st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
    def holds(body: bytes) -> None:
        documented(stand, path, key, body)

    holds()
    assert stand.reservations() == ()


@pytest.mark.parametrize("path", PATHS)
def test_any_change_of_a_valid_body_gets_a_documented_answer_and_leaves_nothing_in_flight(
    stand: Stand, path: str
) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}")

    @EXAMPLES
    @given(body=mutated(RICH[path]) | mutated(PATHS[path]))
    def holds(body: bytes) -> None:
        documented(stand, path, key, body)

    holds()
    assert all(one.state in {"settled", "released"} for one in stand.reservations())
    stand.audited()
