"""An entry of ``spendgate.yaml`` held against its model, and pydantic's errors as sentences that name no value."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from spendgate.configuration_yaml import Findings, Place, shown

EntryType = TypeVar("EntryType", bound=BaseModel)


def validated(
    model: type[EntryType], data: object, place: Place, findings: Findings, *, loopback_http: bool
) -> EntryType | None:
    """Return the entry; None where it has problems, which are then found. Its place may have had problems before."""
    try:
        entry = model.model_validate(data, context={"loopback_http": loopback_http})
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            findings.add((*place, *detail["loc"]), _sentence(model, detail))
        return None
    return None if findings.spoiled(place) else entry


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean x?`` where a known name is close, else what is known."""
    names = sorted(known)
    close = get_close_matches(name[:100], names, n=1)
    if close:
        return f"; did you mean {shown(close[0])}?"
    return f"; known: {', '.join(map(shown, names[:20]))}" if names else ""


_SENTENCES: Final = {
    "missing": "is missing",
    "string_type": "must be text; a number or true/false goes in quotes",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "dict_type": "must be a mapping (name: value)",
    "model_type": "must be a mapping (name: value)",
    "list_type": "must be a list",
    "too_long": "has more than 64 entries",
    "too_short": "is empty: name at least one, or leave it out for all",
    "string_too_long": "is too long: at most 500 characters",
}


def _sentence(model: type[BaseModel], detail: Mapping[str, Any]) -> str:
    kind: str = detail["type"]
    if kind == "extra_forbidden":
        *above, name = detail["loc"]
        return f"is not known here{did_you_mean(str(name), _known(model, above))}"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    return _SENTENCES.get(kind) or str(detail["msg"]).replace("Input should be", "must be").replace("'", "")


def _known(model: type[BaseModel], place: list[str | int]) -> list[str]:
    """Return the names that a model knows at a place inside it."""
    at: Any = model
    for segment in place:
        # A place leads through fields of entries, and through the values of lists and dicts.
        at = at.model_fields[segment].annotation if _is_entry(at) else get_args(at)[-1]
        if get_origin(at) in (UnionType, Union):
            at = next(part for part in get_args(at) if part is not type(None))
    return [field.alias or name for name, field in at.model_fields.items()]


def _is_entry(annotation: Any) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel)
