"""Both HTTP surfaces under requests made up from their documents: an answer that the document tells, and nothing left open.

``make fuzz-http`` does the same with schemathesis, as many times as one likes.
"""

import io
import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from spendgate.asgi import create_app
from spendgate.observability import JsonLog
from tests.gateway.stand import NO_TLS, Stand, standing
from tests.surface.shapes import Made, requests
from tests.surface.site import ROOT, Site, admin_site, gateway_site, operations
from tools.gateway_openapi import document

EXAMPLES = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    # What fails is told as it came: shrinking against a live gateway takes minutes.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def stand(store_url: str) -> Iterator[Stand]:
    with standing(store_url) as stand:
        yield stand


def test_whatever_is_sent_to_the_gateway_gets_an_answer_and_leaves_nothing_open(stand: Stand) -> None:
    stand.begin("surface")
    site = gateway_site(stand)
    assert _statuses(site) >= {200, 400, 404}
    assert site.unheard_of() is None
    stand.audited()


def test_whatever_is_sent_to_the_admin_api_gets_an_answer(stand: Stand) -> None:
    stand.begin("operators")
    with admin_site(stand) as site:
        assert _statuses(site) >= {200, 400, 404, 422}
        assert site.unheard_of() is None


def test_the_gateways_document_is_what_its_tool_writes_and_has_every_path_that_is_answered(stand: Stand) -> None:
    written = json.loads((ROOT / "docs" / "gateway-openapi.json").read_text(encoding="utf-8"))
    assert written == document()
    app = create_app(stand.wired.gateway, settings=stand.settings, log=JsonLog(stream=io.StringIO()))
    answered = {
        (method, one.path.replace(":path}", "}"))
        for one in app.routes
        if isinstance(one, Route)
        for method in (one.methods or set()) - {"HEAD"}
    }
    assert {(method, path) for method, path, _ in operations(written)} == answered


def _statuses(site: Site) -> set[int]:
    """Send many requests, and return the statuses of their answers, none of which is a fault of the gateway's."""
    seen: set[int] = set()
    made = st.one_of(
        [
            st.tuples(st.just((method, path)), requests(site.document, method, path, operation))
            for method, path, operation in operations(site.document)
        ]
    )
    with httpx.Client(
        base_url=site.url, headers=dict(site.headers), trust_env=False, verify=NO_TLS, timeout=30
    ) as client:

        @EXAMPLES
        @given(drawn=made)
        def sent(drawn: tuple[tuple[str, str], Made]) -> None:
            operation, made = drawn
            answer = client.request(
                made.method, made.path, params=made.query, headers=dict(made.headers), content=made.body
            )
            assert answer.status_code < 500, (made, answer.text)
            if made.path.count("/") == operation[1].count("/") and "x-spendgate-provider" not in answer.headers:
                site.check(*operation, answer.status_code, answer.headers, answer.json())
            seen.add(answer.status_code)

        sent()
    return seen
