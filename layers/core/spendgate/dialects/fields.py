"""Checks of a request's fields, as values: a dialect lists its fields with the check of each.

A field of the wrong type is RequestInvalid. A field that is not listed is CostBoundUnknown: providers add
cost-bearing fields every month, so what is not known to be harmless is not sent.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from spendgate.dialects.json_strict import shown
from spendgate.errors import CostBoundUnknown, FieldUnlisted, RefusalFacts, RequestInvalid

Check = Callable[[Any, str], None]

# Known to cost, at one provider or another: nobody can list them as free. Their shapes are read nowhere yet.
COSTLY: Final = frozenset(
    {
        "agents", "advisor", "background", "billing_policy", "compaction", "connectors", "container", "continuationToken",
        "conversation", "fallback_credit_token", "fallbacks", "fast_mode", "mcp_servers", "models", "multi_agent", "plugins",
        "preset", "previous_response_id", "provider", "route", "search_parameters", "skills", "speed", "thread", "tools",
        "toolConfig", "tool_config", "transforms", "web_search", "web_search_options",
    }
)  # fmt: skip


def invalid(place: str, allowed: str) -> NoReturn:
    """Refuse a value; says the field and what is allowed, never the value."""
    raise RequestInvalid(f"{place} must be {allowed}.", facts=RefusalFacts(field=place))


def unbounded(place: str, detail: str = "", *, how: str = "") -> NoReturn:
    """Refuse a feature whose cost has no bound yet.

    ``detail`` says which form of the field is meant, ``how`` by what setting a program that sends it leaves it out.
    """
    what = f"{place} {detail}" if detail else place
    raise CostBoundUnknown(
        f"The cost of {what} is not bounded yet, so the call was not sent.",
        facts=RefusalFacts(field=place, next_action=f"Send the call without {what}{f' ({how})' if how else ''}."),
    )


def unlisted(name: str, *, place: str, checked: str, setting: str = "free_fields", how: str = "") -> NoReturn:
    """Refuse a field of the request itself, or a beta name, that the list of the day ``checked`` does not have.

    ``place`` is what the request calls it, or the header that names it.
    """
    if name in COSTLY:
        unbounded(place)
    what = place if setting == "free_fields" else f"{place} {shown(name)!r}"
    raise FieldUnlisted(
        f"Nobody had listed {what} as free or bounded when its protocol was read on {checked}, so the call was not sent.",
        name=name,
        setting=setting,
        facts=RefusalFacts(
            field=place,
            next_action=f"Send the call without {what}{f' ({how})' if how else ''}, or, where an operator knows that it "
            f"costs nothing, list it in the provider's {setting}: [{shown(name)}].",
        ),
    )


def under(place: str, name: str | int) -> str:
    """Return the place of a member: ``under("messages", 0) == "messages[0]"``."""
    if isinstance(name, int):
        return f"{place}[{name}]"
    return f"{place}.{shown(name)}" if place else shown(name)


def number(value: Any, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        invalid(place, "a number")


def integer(value: Any, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        invalid(place, "a whole number")


def boolean(value: Any, place: str) -> None:
    if not isinstance(value, bool):
        invalid(place, "true or false")


def string(value: Any, place: str) -> None:
    if not isinstance(value, str):
        invalid(place, "a string")


def name(value: Any, place: str) -> None:
    if not isinstance(value, str) or not value:
        invalid(place, "a string that is not empty")


def json_object(value: Any, place: str) -> None:
    if not isinstance(value, dict):
        invalid(place, "an object")


def array(value: Any, place: str) -> None:
    if not isinstance(value, list):
        invalid(place, "an array")


def absent(value: Any, place: str) -> None:
    """Let only null pass: the field is known, and its cost is not bounded yet."""
    if value is not None:
        unbounded(place)


def nullable(check: Check) -> Check:
    """Return the check that lets null pass too."""

    def checked(value: Any, place: str) -> None:
        if value is not None:
            check(value, place)

    return checked


def one_of(*allowed: str) -> Check:
    """Return the check for one of a few strings; another string may cost what we do not know."""

    def checked(value: Any, place: str) -> None:
        string(value, place)
        if value not in allowed:
            unbounded(place, repr(shown(value)))

    return checked


def always(expected: Any) -> Check:
    """Return the check for a feature that may be written down only in its harmless form."""

    def checked(value: Any, place: str) -> None:
        # 0 == False in Python, but not in JSON.
        if type(value) is not type(expected) or value != expected:
            unbounded(place)

    return checked


def each(check: Check) -> Check:
    """Return the check for an array of values of one kind."""

    def checked(value: Any, place: str) -> None:
        array(value, place)
        for index, item in enumerate(value):
            check(item, under(place, index))

    return checked


def mapping_of(check: Check) -> Check:
    """Return the check for an object whose names are the caller's own."""

    def checked(value: Any, place: str) -> None:
        json_object(value, place)
        for key, item in value.items():
            check(item, under(place, key))

    return checked


def record(checks: Mapping[str, Check], *, required: tuple[str, ...] = (), read_on: str | None = None) -> Check:
    """Return the check for an object with known fields only.

    ``read_on`` is given for a request itself: the day when its fields were last read. What came since may be listed.
    """

    def checked(value: Any, place: str) -> None:
        json_object(value, place)
        for key, item in value.items():
            if key not in checks:
                if read_on is not None:
                    unlisted(key, place=under(place, key), checked=read_on)
                unbounded(under(place, key))
            checks[key](item, under(place, key))
        for key in required:
            if key not in value:
                invalid(under(place, key), "given")

    return checked


def by_type(kinds: Mapping[str, Check]) -> Check:
    """Return the check for an object whose ``type`` decides its fields; another type is not bounded yet."""

    def checked(value: Any, place: str) -> None:
        kinds[kind_of(value, place, kinds)](value, place)

    return checked


def kind_of(value: Any, place: str, kinds: Mapping[str, Any]) -> str:
    """Return an object's ``type``; CostBoundUnknown where it is not one of ``kinds``."""
    json_object(value, place)
    kind = value.get("type")
    string(kind, under(place, "type"))
    if kind not in kinds:
        unbounded(place, f"of type {shown(kind)!r}")
    return str(kind)


def anything(_value: Any, _place: str) -> None:
    """Let every value pass: it is checked elsewhere."""
