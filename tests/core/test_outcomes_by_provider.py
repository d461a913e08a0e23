"""What an error of each kind of provider proves: every row of its documents, with the status and the body that it sends.

Provenance: as in ``core/kind``. ``released`` is proven unbilled, ``fee`` costs a fee at most, ``unknown`` keeps its money.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from spendgate.core.kind import KINDS
from spendgate.dialects.json_strict import parse_answer
from spendgate.providers.outcome import may_be_unbilled, verdict

Row = tuple[int, Any, str, str | None]


def code(value: str) -> dict[str, Any]:
    """An error as OpenAI's kind of host says it."""
    return {"error": {"message": "words", "type": "some_error", "code": value}}


def typed(value: str, **details: str) -> dict[str, Any]:
    """An error as Anthropic says it."""
    return {"type": "error", "error": {"type": value, "message": "words", **({"details": details} if details else {})}}


def limited(source: str) -> dict[str, Any]:
    """OpenRouter's limit, and where it lies."""
    return {"error": {"code": 402, "message": "words", "metadata": {"limit_source": source}}}


def google(status: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": 429, "message": "words", "status": status, "details": list(details)}}


REFUSED: Final = (401, 403, 404, 413, 422, 429)
LATE: Final = (408, 500, 502, 503, 504)
PER_DAY: Final = {"@type": "google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDay-FreeTier"}]}
RETRY: Final = {"@type": "google.rpc.RetryInfo", "retryDelay": "37s"}

TABLE: Final[dict[str, tuple[Row, ...]]] = {
    "openai": (
        *((status, {}, "released", None) for status in (400, 409, *REFUSED)),
        *((status, {}, "unknown", None) for status in (402, *LATE)),
        *(
            (429, code(one), "released", one)
            for one in (
                "insufficient_quota",
                "credit_balance_exhausted",
                "project_spend_limit_exceeded",
                "organization_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                "billing_hard_limit_reached",
                "usage_limit_reached",
                "usage_not_included",
            )
        ),
        (429, code("rate_limit_exceeded"), "released", None),
        (403, code("misalignment_policy_violation"), "released", None),
        (503, code("slow_down"), "unknown", None),
    ),
    "azure": (
        *((status, {}, "released", None) for status in REFUSED),
        *((status, {}, "unknown", None) for status in (400, *LATE)),
        (400, code("content_filter"), "unknown", None),
        (400, code("context_length_exceeded"), "released", None),
        (429, code("insufficient_quota"), "released", "insufficient_quota"),
    ),
    "anthropic": (
        *((status, {}, "released", None) for status in (400, 409, 529, *REFUSED)),
        *((status, {}, "unknown", None) for status in LATE),
        (402, typed("billing_error"), "released", "billing_error"),
        *(
            (429, typed("rate_limit_error", error_code=one), "released", one)
            for one in (
                "enforced_spend_limit_reached",
                "contract_spend_limit_reached",
                "linked_organization_spend_limit_reached",
            )
        ),
        (429, typed("rate_limit_error", error_code="ramp_limit_exceeded"), "released", None),
        (529, typed("overloaded_error"), "released", None),
    ),
    "gemini": (
        *((status, {}, "released", None) for status in (400, *REFUSED)),
        *((status, {}, "unknown", None) for status in (402, 409, *LATE)),
        # A quota of requests is no spend, and what passes by itself is no alarm.
        (429, google("RESOURCE_EXHAUSTED", PER_DAY, RETRY), "released", None),
        (429, google("RESOURCE_EXHAUSTED"), "released", None),
    ),
    "bedrock": (
        *((status, {}, "released", None) for status in (400, 401, 403, 404, 413, 415, 429)),
        *((status, {}, "unknown", None) for status in (409, 422, 424, *LATE)),
        (400, {"__type": "ServiceQuotaExceededException"}, "released", "ServiceQuotaExceededException"),
        (400, {"__type": "ValidationException"}, "released", None),
        (424, {"__type": "ModelErrorException"}, "unknown", None),
        (408, {"__type": "ModelTimeoutException"}, "unknown", None),
    ),
    "openrouter": (
        *((status, {}, "released", None) for status in (400, 502, 503, *REFUSED)),
        *((status, {}, "unknown", None) for status in (408, 500, 504)),
        *((402, limited(one), "released", one) for one in ("openrouter_credits", "openrouter_key_limit")),
        (402, limited("openrouter_in_flight_budget"), "released", None),
        (402, {}, "released", "402"),
    ),
    "xai": (
        *((status, {}, "released", None) for status in (401, 404, 413, 422, 429)),
        *((status, {}, "unknown", None) for status in (402, *LATE)),
        (400, {"code": "Client specified an invalid argument", "error": "words"}, "fee", None),
        (403, {"code": "permission-denied", "error": "words"}, "fee", None),
    ),
    "groq": (
        *((status, {}, "released", None) for status in (400, *REFUSED)),
        *((status, {}, "unknown", None) for status in (402, 498, *LATE)),
        (400, code("blocked_api_access"), "released", "blocked_api_access"),
    ),
    **{
        kind: (
            *((status, {}, "released", None) for status in (400, *REFUSED)),
            *((status, {}, "unknown", None) for status in LATE),
            (402, {}, "released", "402"),
        )
        for kind in ("mistral", "deepseek", "together", "fireworks")
    },
    "compatible": (
        *((status, {}, "released", None) for status in (400, *REFUSED)),
        *((status, {}, "unknown", None) for status in (402, 499, *LATE)),
    ),
}
TABLE["bedrock-anthropic"] = TABLE["bedrock"]


def rows() -> Iterator[tuple[str, int, Any, str, str | None]]:
    for kind, found in TABLE.items():
        yield from ((kind, *row) for row in found)


@pytest.mark.parametrize("kind, status, body, outcome, limit", list(rows()))
def test_what_a_provider_says_of_an_error_decides_the_money_and_whether_it_is_its_own_limit(
    kind: str, status: int, body: Any, outcome: str, limit: str | None
) -> None:
    text = str(body).replace("'", '"').encode()
    assert parse_answer(text) == body
    found = verdict(KINDS[kind], status, text)
    released = "released" if found.unbilled else "unknown"
    assert ("fee" if found.fee else released, found.spend_limit) == (outcome, limit)
    # What the status rules out is not read: no body makes it unbilled.
    assert may_be_unbilled(KINDS[kind], status) or outcome == "unknown"


def test_every_kind_has_its_table() -> None:
    assert set(TABLE) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_comes_after_the_work_is_proven_by_any_code(kind: str) -> None:
    codes = {code for _, code in KINDS[kind].unbilled_codes} | KINDS[kind].spend_codes
    for one in codes:
        assert not verdict(KINDS[kind], 500, str(code(one)).replace("'", '"').encode()).unbilled
