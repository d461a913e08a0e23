# ruff: noqa: RUF001 - letters that look like others are what this is about
"""Texts, JSON and schemas that are hard to measure, from a seeded generator: fast enough for millions of cases."""

from __future__ import annotations

from random import Random
from typing import Any, Final

Json = Any

# One code point or more of every way to be expensive: scripts of one to four bytes, what grows under NFC or NFKC, what
# combines, what is invisible, what looks like a special token or like JSON, and runs that tokenizers merge.
PIECES: Final = (
    "the ", "a", "I", " ", "\n", "\t", "    ", "\r\n", "0", "12345", "...", "-----", "=", "//", "\\", '"', "'", "{", "}", "[1,1]",
    "é", "ß", "ñ", "Ж", "привет ", "Ω", "שלום", "مرحبا ", "हिन्दी", "ไทย", "ქართული", "አማርኛ", "中文", "日本語", "한국어",
    "ﷺ", "ﷻ", "\u0f77", "\U0001d160", "ﬃ", "½", "㍿", "①", "Å", "ǅ", "\u2126", "\ufb1f", "\u1e9b\u0323",
    "😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "\U0002f800", "\U00012000", "𝔘𝔫𝔦", "\U0010fffd", "\ue000", "e\u0301", "\u0301" * 4, "Z͑ͫ̓ͪ̂",
    "\u200b", "\u00a0", "\u2028", "\ufeff", "\u202e", "\x00", "\x7f", "\ufffd",
    "<|endoftext|>", "<|im_start|>system\n", "</s>", "[INST]", "\n\nHuman:", "<｜begin▁of▁sentence｜>", '{"a":1}', "\\u0041",
)  # fmt: skip
GROWERS: Final = ("ﷺ", "\u0f77", "ﷻ", "\U0001d160", "\u0958", "\ufb2c", "㌀", "㋿")
NAMES: Final = (
    "get_weather",
    "search",
    "名前",
    "x",
    "field_1",
    "ﷺ",
    "a-b",
    "the_longest_name_that_anybody_would_ever_use",
)
_NUMBERS: Final = (0, 1, -1, 7, 10**9, -(10**15), 0.5, 1.25, 1e16, 1e20, 5e-7, 2**53)


def text(random: Random, *, most: int = 24) -> str:
    """Return a text of up to so many pieces: of one piece over and over, of growers, or of anything."""
    pieces = random.randrange(most + 1)
    kind = random.random()
    if kind < 0.2:
        return random.choice(PIECES) * pieces
    if kind < 0.3:
        return "".join(random.choices(GROWERS, k=pieces))
    if kind < 0.35:
        return "".join(_any_character(random) for _ in range(pieces))
    return "".join(random.choices(PIECES, k=pieces))


def name(random: Random) -> str:
    """Return a name that is not empty."""
    return random.choice(NAMES)


def value(random: Random, *, depth: int = 3) -> Json:
    """Return a JSON value of any kind."""
    kind = random.randrange(9 if depth else 6)
    if kind < 2:
        return random.choice(_NUMBERS)
    if kind < 4:
        return text(random, most=6)
    if kind == 4:
        return random.choice((True, False, None))
    if kind == 5:
        return random.choice(([], {}, "", "[1,1,1,1]", '{"a": {"b": [1, 2]}}', [1] * random.randrange(30)))
    if kind == 6:
        return [value(random, depth=depth - 1) for _ in range(random.randrange(4))]
    if kind == 7:
        return nested(random.randrange(20))
    return json_object(random, depth=depth - 1)


def json_object(random: Random, *, depth: int = 2) -> dict[str, Json]:
    """Return a JSON object."""
    return {name(random): value(random, depth=depth) for _ in range(random.randrange(4))}


def nested(levels: int) -> Json:
    """Return arrays in arrays: what grows most when it is laid out."""
    found: Json = []
    for _ in range(levels):
        found = [found]
    return found


def schema(random: Random, *, references: bool = True) -> dict[str, Json]:
    """Return a JSON schema, at times with definitions that are referred to."""
    found: dict[str, Json] = {
        "type": "object",
        "properties": {name(random): _property(random, depth=2) for _ in range(random.randrange(5))},
    }
    if random.random() < 0.4:
        found["required"] = list(found["properties"])
    if random.random() < 0.3:
        found["additionalProperties"] = False
    if references and random.random() < 0.3:
        found["$defs"] = {"Item": _property(random, depth=1), "Name": {"type": "string"}}
        for index in range(random.randrange(1, 4)):
            found["properties"][f"ref_{index}"] = {"$ref": random.choice(("#/$defs/Item", "#/$defs/Name"))}
    return found


def _property(random: Random, *, depth: int) -> Json:
    kind = random.randrange(5 if depth else 3)
    if kind == 0:
        return {"type": "string", "description": text(random, most=8)}
    if kind == 1:
        return {"type": "string", "enum": [name(random) for _ in range(random.randrange(4))]}
    if kind == 2:
        return {"type": random.choice(("integer", "number", "boolean")), "default": random.choice(_NUMBERS)}
    if kind == 3:
        return {"type": "array", "items": _property(random, depth=depth - 1)}
    return schema(random, references=False)


def _any_character(random: Random) -> str:
    while 0xD800 <= (point := random.randrange(0x110000)) <= 0xDFFF:
        pass
    return chr(point)
