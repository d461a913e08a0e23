"""Cases of models by other names, and of callers by other names."""

from typing import Final

from spendgate.core.money import Picodollars
from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.driver import MODEL, RATE, Caller, Model
from spendgate.local.conformance.manner import Manner

_UNPRICED: Final = "conformance-unpriced"
_CHEAP_NAME: Final = "conformance-cheap"
_OTHER_PATHS: Final = (
    "/v1/images/generations",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/batches",
    "/v1/audio/speech",
    "/openai/v1/images/generations",
    "//v1/images/generations",
    "/v1/chat/completions/../images/generations",
    "/images/generations",
)


def _unpriced(stand: Stand) -> None:
    body = stand.body(model=stand.session.asked[_UNPRICED])
    stand.burst([body] * 16)
    stand.spend(body, most=20)


def _near_names(stand: Stand) -> None:
    name = stand.session.asked[MODEL]
    near = (
        name.upper(),
        f"{name}-2026-11-30",
        f"{name}-latest",
        f"openai/{name}",
        f"models/{name}",
        f" {name} ",
        f"{name}:free",
        name[:-1],
        f"ft:{name}:org::id",
        "",
    )
    for one in near:
        for _ in range(3):
            stand.call(stand.body(model=one))


def _other_name(stand: Stand) -> None:
    stand.spend(most=40)


def _names_itself(stand: Stand) -> None:
    for number in range(30):
        who = f"somebody-{number}"
        headers = {
            "x-governer-agent": who,
            "x-inferrail-attribute-work-id": who,
            "x-inferrail-attribute-project": who,
            "x-inferrail-budget-usd": "1000",
            "x-hardcap-tenant": who,
            "x-spendgate-budget": who,
            "x-litellm-tags": who,
            "openai-organization": who,
            "x-forwarded-for": f"10.0.0.{number}",
        }
        stand.call(stand.body(user=who, metadata={"user_id": who, "tags": who}), headers=headers)
        stand.call(headers=headers)


def _no_key(stand: Stand) -> None:
    for key in ("", "sk-invented", "sg-" + "0" * 40, stand.session.callers[0].key + "x"):
        stand.call(caller=Caller(key=key))
    if stand.provider.hits:
        raise Missed(f"{stand.provider.hits} of 4 calls without a key of the gateway's were sent to the provider")


def _revoked(stand: Stand) -> None:
    stand.spend(most=2)
    before = stand.provider.hits
    stand.session.revoke(stand.session.callers[0])
    stand.spend(most=6)
    if stand.provider.hits > before:
        raise Missed(f"{stand.provider.hits - before} calls with a revoked key were sent to the provider")


def _side_doors(stand: Stand) -> None:
    body = {"model": stand.session.asked[MODEL], "prompt": "x", "input": "x"}
    for path in _OTHER_PATHS:
        for _ in range(2):
            stand.call(body, path=path)


CASES: Final = (
    Case(
        name="unpriced model",
        group="unpriced and aliased models",
        title="a model that is served and has no price",
        play=_unpriced,
        unpriced=(_UNPRICED,),
        sends=False,
    ),
    Case(
        name="nearly its name",
        group="unpriced and aliased models",
        title="ten spellings close to a priced model's name, three calls each",
        play=_near_names,
        sends=False,
    ),
    Case(
        name="another name in the answer",
        group="unpriced and aliased models",
        title="the answer says that a cheaper model answered; the dearer one is billed",
        play=_other_name,
        models=(Model(), Model(name=_CHEAP_NAME, input=Picodollars(RATE // 10), output=Picodollars(RATE // 10))),
        manner=Manner(model=_CHEAP_NAME),
    ),
    Case(
        name="names itself",
        group="identity",
        title="each call says in headers and body that it is somebody else, and how much it may spend",
        play=_names_itself,
    ),
    Case(name="no key", group="identity", title="no key, and three invented ones", play=_no_key, sends=False),
    Case(name="revoked key", group="identity", title="a key is taken away after two calls", play=_revoked),
    Case(
        name="side doors",
        group="identity",
        title="nine other paths that a provider bills, with a good key",
        play=_side_doors,
        limit="0.05",
        sends=False,
    ),
)
