"""Bare prompts: a text, the ids of its tokens, or a list of either, each of which the model reads by itself."""

from typing import Any, Final

from spendgate.dialects.fields import invalid, under
from spendgate.dialects.measure import text_bytes

_ALLOWED: Final = "a string, an array of strings, an array of token ids, or an array of such arrays"


def sizes(prompt: Any, place: str) -> tuple[int, ...]:
    """Return the most tokens of each prompt; RequestInvalid where it is none."""
    if isinstance(prompt, str):
        return (text_bytes(prompt),)
    if not isinstance(prompt, list) or not prompt:
        invalid(place, _ALLOWED)
    if _is_id(prompt[0]):
        return (_ids(prompt, place),)
    return tuple(_size(one, under(place, index), alike=type(prompt[0])) for index, one in enumerate(prompt))


def _size(prompt: Any, place: str, *, alike: type) -> int:
    if not isinstance(prompt, alike):
        invalid(place, "of the same type as the first")
    if isinstance(prompt, str):
        return text_bytes(prompt)
    if not isinstance(prompt, list):
        invalid(place, "a string or an array of token ids")
    return _ids(prompt, place)


def _ids(ids: list[Any], place: str) -> int:
    for index, one in enumerate(ids):
        if not _is_id(one):
            invalid(under(place, index), "a token id: a whole number that is not negative")
    return len(ids)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
