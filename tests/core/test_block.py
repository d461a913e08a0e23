import pytest

from spendgate.core.block import Block, Shape, block_on, shape_of
from spendgate.core.media import Media
from spendgate.core.request import Demand, RequestFacts
from spendgate.core.route import Candidate
from tests.store.builders import NOW

HERE = Candidate(provider="openai", model="house")
ELSEWHERE = Candidate(provider="openai", model="other")


def a_block(feature: str, candidate: Candidate = HERE) -> Block:
    return Block(
        candidate=candidate,
        feature=feature,
        reservation="01M8N6E99MVKD2ANNST5RWH4AW",
        budget="acme",
        dialect="openai",
        at=NOW,
        reserved=40,
        billed=41,
        shape=Shape(features=(feature, "text")),
    )


def test_the_most_specific_feature_comes_first_and_text_is_in_every_request() -> None:
    facts = RequestFacts(
        dialect="openai",
        model="gpt",
        text_bytes=3,
        stream=True,
        tools=2,
        service_tier="priority",
        speed="fast",
        media=(Media(kind="image", field="a"), Media(kind="image", field="b", detail="low")),
        demands=(Demand(feature="web_search", field="tools", uses=1),),
    )

    assert shape_of(facts) == Shape(
        features=("web_search", "image", "tier:priority", "speed:fast", "text"), stream=True, tools=2
    )


def test_a_plain_request_has_a_plain_shape() -> None:
    facts = RequestFacts(dialect="openai", model="gpt", text_bytes=3, service_tier="default", speed="standard")

    assert shape_of(facts) == Shape()


@pytest.mark.parametrize(
    "feature, features, blocked",
    [
        ("image", ("image", "text"), True),
        ("image", ("web_search", "image", "text"), True),
        ("image", ("text",), False),
        # What is wrong of a plain request is wrong of all.
        ("text", ("image", "text"), True),
    ],
)
def test_a_block_meets_what_uses_its_feature(feature: str, features: tuple[str, ...], blocked: bool) -> None:
    block = a_block(feature)

    assert block_on([block], [ELSEWHERE, HERE], Shape(features=features)) == (block if blocked else None)


def test_a_block_leaves_other_models_alone() -> None:
    assert block_on([a_block("text")], [ELSEWHERE], Shape()) is None
