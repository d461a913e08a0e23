"""Kinds of providers through the gateway: what their errors prove, whose charge is booked, how a request is spelled."""

import json
from typing import Any

import openai
import pytest

from spendgate.alerts import store_of
from spendgate.core.kind import KINDS
from spendgate.core.money import usd, usd_text
from spendgate.providers.outcome import UNCLEAR, Verdict, verdict
from tests.gateway.stand import FILE, Stand, chat
from tests.gateway.test_outcomes import ended, released

ROOMY = '$: {limits: {usd: {day: "1"}}}'
CHAT_KINDS = tuple(kind.name for kind in KINDS.values() if kind.dialect == "openai")


@pytest.fixture
def key(stand: Stand) -> str:
    """A key that may ask for a route of each kind, named like it; all of them are the demo provider."""
    framing = "{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}"
    entry = f'"{stand.provider_url}/v1", secret: env:PROVIDER_KEY, framing: {framing}'
    providers = [f"  {kind}-kind: {{dialect: openai, kind: {kind}, base_url: {entry}}}" for kind in CHAT_KINDS]
    providers.append(
        f"  anthropic-kind: {{dialect: anthropic, base_url: {stand.provider_url}, secret: env:PROVIDER_KEY, framing: {framing}}}"
    )
    names = (*CHAT_KINDS, "anthropic")
    row = 'model: demo, input: "2.50", output: "10", context_tokens: 1000, output_tokens_max: 500'
    prices = [f"  - {{provider: {name}-kind, {row}}}" for name in names]
    routes = [f"  {name}: [{{provider: {name}-kind, model: demo}}]" for name in names]
    routes.append("  groq-then-gpt: [{provider: groq-kind, model: demo}, {provider: gpt-host, model: demo}]")
    budgets = ROOMY.replace("}}}", "}}, failover: true}").replace("$", stand.root)
    text = (
        FILE.replace("URL", stand.provider_url)
        .replace("prices:\n", "\n".join([*providers, "prices:\n"]), 1)
        .replace("routes:\n", "\n".join([*prices, "routes:\n"]), 1)
    )
    text += "\n".join([*routes, f"budgets:\n  {budgets}\nkeys:\n  {stand.root}-key: {{budget: {stand.root}}}\n"])
    applied = stand.admin.apply(text, by="a test")
    assert applied["complete"], applied["failure"]
    return str(next(iter(applied["keys"].values())))


# --- what an error proves: providers.md 13


@pytest.mark.parametrize(
    "kind, status, code, limit",
    [
        *(
            ("openai", 429, code, code)
            for code in ("insufficient_quota", "project_spend_limit_exceeded", "organization_spend_limit_exceeded")
        ),
        ("openai", 429, "rate_limit_exceeded", None),
        ("azure", 429, "insufficient_quota", "insufficient_quota"),
        ("groq", 400, "blocked_api_access", "blocked_api_access"),
        ("groq", 400, "invalid_request", None),
        *((kind, 402, None, "402") for kind in ("deepseek", "mistral", "together", "fireworks", "openrouter")),
        ("compatible", 429, "insufficient_quota", None),
    ],
)
def test_a_limit_of_the_provider_s_own_is_told_once_and_is_in_the_log(
    stand: Stand, key: str, kind: str, status: int, code: str | None, limit: str | None
) -> None:
    stand.behave("refuse", status=status, code=code, retry_after="1")
    response = stand.chat(key, model=kind)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    released(stand)
    told = [json.loads(line) for line in stand.log.getvalue().splitlines() if "provider spend limit" in line]
    seen = [line for line in told if line.get("reservation") == stand.reservation().id and line.get("spend_limit")]
    if limit is None:
        assert "x-should-retry" not in response.headers
        assert response.headers["retry-after"] == "1"
        assert not seen
    else:
        assert response.headers["x-should-retry"] == "false"
        assert "retry-after" not in response.headers
        assert [line["spend_limit"] for line in seen] == [limit]
        assert stand.reservation().reason == f"provider {kind}-kind answered {status}: provider spend limit ({limit})"
        (alert,) = store_of(stand.reader).outbox()
        assert (alert.kind, alert.scope, alert.facts["limit"]) == (
            "provider_spend_limit",
            f"provider:{kind}-kind",
            limit,
        )


def test_the_openai_client_meets_the_provider_s_own_limit_once(stand: Stand, key: str) -> None:
    stand.behave("refuse", status=429, code="insufficient_quota", calls=None)
    with (
        stand.openai(key, max_retries=3) as client,
        pytest.raises(openai.RateLimitError, match="demo provider refuses"),
    ):
        client.chat.completions.create(model="openai", messages=[{"role": "user", "content": "Hello"}], max_tokens=20)
    assert stand.hits == 1
    released(stand)


@pytest.mark.parametrize(
    "kind, status, code",
    [
        ("azure", 400, None),
        ("azure", 400, "content_filter"),
        ("azure", 408, None),
        ("openai", 402, None),
        ("compatible", 402, None),
        ("openai", 408, None),
        ("openai", 503, None),
        ("xai", 503, None),
        ("fireworks", 412, None),
    ],
)
def test_what_is_not_proven_unbilled_keeps_its_money(
    stand: Stand, key: str, kind: str, status: int, code: str | None
) -> None:
    stand.behave("refuse", status=status, code=code)
    response = stand.chat(key, model=kind)
    assert response.status_code in {502, 504}
    assert ended(stand, response).state == "unknown"
    assert stand.state().unknown == stand.reservation().asked.usd > 0
    stand.audited()


@pytest.mark.parametrize(
    "kind, status, code",
    [
        ("azure", 400, "context_length_exceeded"),
        ("azure", 400, "unsupported_parameter"),
        ("azure", 429, None),
        ("openrouter", 502, None),
        ("openrouter", 503, None),
        ("together", 403, None),
        ("mistral", 422, None),
    ],
)
def test_what_is_proven_unbilled_is_released_with_the_provider_s_words(
    stand: Stand, key: str, kind: str, status: int, code: str | None
) -> None:
    stand.behave("refuse", status=status, code=code)
    response = stand.chat(key, model=kind)
    assert response.status_code == status
    assert "demo provider refuses" in response.json()["error"]["message"]
    released(stand)


def test_a_route_goes_past_a_provider_whose_own_limit_is_reached(stand: Stand, key: str) -> None:
    stand.behave("refuse", status=400, code="blocked_api_access")
    response = stand.chat(key, model="groq-then-gpt")
    assert response.status_code == 200
    assert response.headers["x-spendgate-provider"] == "gpt-host"
    assert stand.hits == 2
    stand.audited()


def limited(code: str) -> Verdict:
    return Verdict(unbilled=True, elsewhere=True, spend_limit=code)


@pytest.mark.parametrize(
    "kind, status, body, expected",
    [
        ("anthropic", 402, {"error": {"type": "billing_error"}}, limited("billing_error")),
        (
            "anthropic",
            429,
            {"error": {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}},
            limited("enforced_spend_limit_reached"),
        ),
        (
            "anthropic",
            429,
            {"error": {"type": "rate_limit_error", "details": {"error_code": "ramp_limit_exceeded"}}},
            Verdict(unbilled=True, elsewhere=True),
        ),
        # The one limit that is told by words alone: they prove no more than the status does, and are told on.
        (
            "anthropic",
            400,
            {"error": {"message": "You have reached your specified API usage limits. More"}},
            limited("specified_usage_limits"),
        ),
        (
            "anthropic",
            400,
            {"error": {"message": "You have reached your specified workspace API usage limits."}},
            limited("specified_usage_limits"),
        ),
        (
            "anthropic",
            400,
            {"error": {"message": "messages: You have reached your specified API usage limits"}},
            Verdict(unbilled=True),
        ),
        ("anthropic", 400, {"error": {"message": 5}}, Verdict(unbilled=True)),
        ("anthropic", 500, {"error": {"message": "You have reached your specified API usage limits"}}, UNCLEAR),
        ("anthropic", 500, {"error": {"type": "billing_error"}}, UNCLEAR),
        (
            "openrouter",
            402,
            {"error": {"code": 402, "metadata": {"limit_source": "openrouter_credits"}}},
            limited("openrouter_credits"),
        ),
        (
            "openrouter",
            402,
            {"error": {"code": 402, "metadata": {"limit_source": "openrouter_in_flight_budget"}}},
            Verdict(unbilled=True, elsewhere=True),
        ),
        ("openai", 429, {"error": {"type": "insufficient_quota", "code": None}}, limited("insufficient_quota")),
        ("azure", 400, {"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}, UNCLEAR),
        (
            "openai",
            401,
            {"error": {"code": "invalid_api_key"}},
            Verdict(unbilled=True, credentials=True, elsewhere=True),
        ),
        ("openai", 429, ["insufficient_quota"], Verdict(unbilled=True, elsewhere=True)),
        ("deepseek", 402, {"error_msg": "Insufficient Balance"}, limited("402")),
        ("mistral", 402, {"object": "error", "type": "payment", "code": "1"}, limited("402")),
    ],
)
def test_an_error_is_judged_by_its_status_and_codes(kind: str, status: int, body: Any, expected: Verdict) -> None:
    assert verdict(KINDS[kind], status, json.dumps(body).encode()) == expected


# --- whose charge is booked


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "kind, said, cost",
    [
        ("openrouter", {"cost": 0.0000123}, "0.0000123"),
        (
            "openrouter",
            {"cost": 0.000001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.00002}},
            "0.000021",
        ),
        ("openrouter", {"cost": 0}, "0"),
        ("xai", {"cost_in_usd_ticks": 123_457}, "0.0000123457"),
    ],
)
def test_the_provider_s_own_charge_is_booked_and_the_computed_cost_kept_beside_it(
    stand: Stand, key: str, kind: str, said: dict[str, Any], cost: str, stream: bool
) -> None:
    stand.behave("ok", usage_fields=said, billed_picodollars=usd(cost))
    assert stand.chat(key, model=kind, stream=stream).status_code == 200
    one = stand.ended()
    assert one.state == "settled"
    assert one.actual is not None
    assert usd_text(one.actual.usd) == cost
    assert one.evidence is not None
    assert "by the pinned price it is 0.0001" in one.evidence
    stand.audited()


@pytest.mark.parametrize(
    "kind, said", [("openrouter", {"cost": None}), ("xai", {}), ("compatible", {"cost": 0.000001})]
)
def test_where_the_provider_names_no_charge_its_counts_are_priced(
    stand: Stand, key: str, kind: str, said: dict[str, Any]
) -> None:
    stand.behave("ok", usage_fields=said)
    assert stand.chat(key, model=kind).status_code == 200
    one = stand.ended()
    assert one.actual is not None
    assert one.actual.usd == stand.book.billed_picodollars > 0
    assert one.evidence is None


def test_a_charge_above_what_was_reserved_is_booked_and_stops_the_budget_by_name(stand: Stand, key: str) -> None:
    stand.behave("ok", usage_fields={"cost": 0.5}, billed_picodollars=usd("0.5"))
    assert stand.chat(key, model="openrouter").status_code == 200
    one = stand.ended()
    assert one.actual is not None
    assert one.actual.usd == usd("0.5")
    stop = stand.state().policy.stop
    assert stop is not None
    assert stop.reservation == one.id
    assert stand.chat(key, model="openrouter").status_code == 402


# --- how a request is spelled


@pytest.mark.parametrize("kind", CHAT_KINDS)
def test_a_cap_is_stamped_under_the_name_of_the_kind(stand: Stand, key: str, kind: str) -> None:
    response = stand.chat(key, model=kind, max_completion_tokens=...)
    assert response.status_code == 200
    assert response.headers["x-spendgate-output-cap"] == "500"
    (call,) = stand.calls
    caps = {name for name in call.field_names if name.startswith("max_")}
    assert caps == {"max_completion_tokens" if kind in {"openai", "azure"} else "max_tokens"}
    assert call.output_cap == 500


def test_azure_is_called_with_its_own_header_and_never_with_the_caller_s(stand: Stand, key: str) -> None:
    assert stand.chat(key, model="azure").status_code == 200
    (arrival,) = stand.provider.arrivals
    assert arrival.headers["api-key"].startswith("sk-CANARY")
    assert "authorization" not in arrival.headers


def test_a_mistral_stream_is_not_asked_for_its_usage(stand: Stand, key: str) -> None:
    assert stand.chat(key, model="mistral", stream=True).status_code == 200
    (call,) = stand.calls
    assert call.stream
    assert "stream_options" not in call.field_names


def test_reasoning_beyond_the_cap_is_reserved_for(stand: Stand, key: str) -> None:
    inside = stand.chat(key, model="groq")
    beyond = stand.chat(key, model="xai")
    reserved = [usd(one.headers["x-spendgate-reserved-usd"]) for one in (inside, beyond)]
    assert reserved[1] - reserved[0] == (1000 - 20) * 10_000_000 + usd("0.05")


def test_a_body_for_a_kind_is_the_one_that_was_sent(stand: Stand, key: str) -> None:
    assert stand.post("/v1/chat/completions", chat(model="deepseek"), key).status_code == 200
    body = json.loads(b"".join(stand.provider.bodies))
    assert body == {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20}


# --- a refusal that may cost a fee: providers.md 8, xAI


@pytest.mark.parametrize("status", [400, 403])
def test_a_refusal_that_may_cost_a_fee_is_booked_at_the_fee_and_never_released(
    stand: Stand, key: str, status: int
) -> None:
    stand.behave("refuse", status=status, code="permission-denied")
    response = stand.chat(key, model="xai")
    one = ended(stand, response)
    assert (one.state, one.actual and one.actual.usd) == ("settled", usd("0.05"))
    assert one.asked.usd > usd("0.05")
    told = response.json()["error"]
    if status == 400:
        assert response.headers["x-spendgate-cost-usd"] == "0.05"
        assert "demo provider refuses" in told["message"]
    else:
        assert "0.05 USD" in told["message"]
        assert "demo provider refuses" not in told["message"]
    state = stand.state()
    assert (state.reserved, state.unknown, state.counters["usd.life"]) == (0, 0, usd("0.05"))
    assert state.policy.stop is None
    assert stand.hits == 1
    stand.audited()


def test_a_fee_is_held_beside_the_answer_and_given_back_with_it(stand: Stand, key: str) -> None:
    response = stand.chat(key, model="xai")
    one = ended(stand, response)
    assert one.asked.usd > usd("0.05")
    assert one.actual is not None
    assert one.actual.usd == stand.book.billed_picodollars < usd("0.05")
    stand.audited()
