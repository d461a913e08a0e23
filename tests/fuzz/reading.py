"""How many tokens an adversarial provider can find in a request: its own reading of the body that was sent.

Written from the providers' rules and not from the product's: nothing of ``spendgate`` is imported. The numbers in
brackets are sections of the provider facts (prices.md's companion, kept by the team), repeated here by hand.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

Json = Any

# [10.3] the most that is known or allowed for of what stands in no byte.
REQUEST, TOOLING, TOOL, PART = 1024, 1024, 64, 16
# [11] servers that send the cap and a little more.
OVERSHOOT: Final = 16
# [2, 4] what a request that says nothing gets.
COMPLETIONS_CAP: Final = 16
# [12] ten iterations of a server's loop, and the answer.
CLAUDE_TURNS: Final = 11
# [2.B] what a search of the smaller chat models brings in; in Responses of these alone, and no usage shows it.
SEARCH_TOKENS: Final = 8_000
SEARCH_TOKENS_UNSEEN: Final = frozenset({"gpt-4o-mini", "gpt-4.1-mini"})
# [5.C], what is approximate there with a quarter more.
CLAUDE_TOOLS: Final = {
    "bash_20250124": 325,
    "text_editor_20250728": 700,
    "computer_20250124": 735 + 499,
    "computer_toolset_20260801": 4_590 * 5 // 4,
    "browser_toolset_20260801": (6_670 + 880) * 5 // 4,
}
# [10.5] the most tokens of an image; of gpt-4o-mini's the context is no limit.
IMAGES: Final = {
    "gpt-4o-mini": 48_169,
    "gpt-4o": 1_445,
    "gpt-5": 1_190,
    "o3": 1_275,
    "gpt-5.4": 12_000,
    "gpt-5.6-sol": 36_000,
    "gpt-6-astra": 36_000,
    "o4-mini": 15_115,
    "claude-opus-5-5": 5_000,
    "claude-haiku-4-5": 1_700,
    "gemini-3.8-flash": 2_304,
}
# [7] the same models under the names that Bedrock has for them.
AT_BEDROCK: Final = {
    "anthropic.claude-opus-5-5": "claude-opus-5-5",
    "us.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5",
}
# [10.5] and what it costs less of, by the detail that it is looked at with; gpt-5.4 takes "auto" for high.
DETAILS: Final = {
    ("gpt-4o-mini", "low"): 2_833,
    ("gpt-4o", "low"): 85,
    ("gpt-5", "low"): 70,
    ("o3", "low"): 75,
    ("gpt-5.4", "low"): 3_000,
    ("gpt-5.4", "high"): 3_000,
    ("gpt-5.4", "auto"): 3_000,
}
BESIDE_THE_CONTEXT: Final = frozenset({"gpt-4o-mini"})
# [10.5] an image may have any number of tiles, or costs by a rule that nobody has published.
IMAGES_OF_ANY_SIZE: Final = frozenset({"gemini-embedding-2"})


@dataclass(slots=True)
class Reading:
    """What a body comes to: tokens, and what only the model's sizes bound."""

    tokens: int = REQUEST
    image_tokens: int = 0
    beside: int = 0
    hidden_blocks: int = 0
    fills_context: bool = False
    # What a whole context of it is billed as, where that has a rate of its own.
    pages: bool = False
    sound: bool = False
    inputs: int = 1
    cap: int | None = None
    choices: int = 1
    has_output: bool = True
    tools: int = 0
    tooling: bool = False
    long_write: bool = False
    writes: bool = False
    reads_cache: bool = True
    tier: str | None = None
    geo: str | None = None
    speed: str | None = None
    # Features of the server's own, with the number of uses that the request states.
    uses: dict[str, int | None] = field(default_factory=dict)
    # [3] one number for all of a response's tools together, where there is one; of some a use costs several fees.
    calls: int | None = None
    counts_calls: bool = False
    fees_each: int = 1
    # What a use brings in that stands in no usage.
    unseen: int = 0
    # [12] the conversation may be summed up, and what the server holds may be read.
    compacts: bool = False
    held: int = 0
    unbounded: bool = False
    model: str = "m"

    def text(self, said: Json) -> None:
        if said:
            self.tokens += bytes_of(said)

    def part(self) -> None:
        self.tokens += PART

    def tool(self) -> None:
        self.tools += 1
        self.tokens += TOOL
        self.tooling = True

    def whole(self, model: str = "", *, pages: bool = True, sound: bool = False) -> None:
        """[10.5] what may be as long as the context; pages have images, which some models bill beside it."""
        self.fills_context = True
        self.pages, self.sound = self.pages or pages, self.sound or sound
        self.unbounded = self.unbounded or (pages and model in BESIDE_THE_CONTEXT)

    def image(self, model: str, detail: str | None = None) -> None:
        if model in IMAGES_OF_ANY_SIZE:
            self.whole(model)
            return
        most = DETAILS.get((model, detail or "auto"), IMAGES[model])
        if model in BESIDE_THE_CONTEXT:
            self.beside += most
        else:
            self.image_tokens += most

    @property
    def within(self) -> int:
        """All tokens that stand in the context."""
        return self.tokens + self.image_tokens + (TOOLING if self.tooling else 0)


def bytes_of(text: str) -> int:
    """[10.1] a token a byte, after whatever normalisation makes most of it."""
    return max(len(one.encode()) for one in {text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFKC"))})


def printed(value: Json) -> int:
    """[10.2] JSON laid out again in its dearest spelling: a token a byte, and one for every gap of the layout."""
    gaps = _gaps(value)
    plain = bytes_of(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    escaped = len(json.dumps(value, separators=(",", ":")))
    full = len(json.dumps(_in_full(value), separators=(",", ":"))) if _exponents(value) else 0
    # As types with comments: each line of a string that describes something begins with slashes of its own.
    commented = plain + 3 * _lines(value)
    return max(plain, escaped, full, commented) + gaps


def with_schema(holder: Json, schema: Json) -> int:
    """[10.2] the dearer of a holder as it is, and with its schema's references written out."""
    as_it_is = printed(holder)
    if not isinstance(schema, dict) or "$ref" not in json.dumps(schema):
        return as_it_is
    written_out = {name: item for name, item in _inlined(schema, schema).items() if name != "$defs"}
    return max(as_it_is, as_it_is - printed(schema) + printed(written_out))


def again(text: str) -> Json:
    """The value that a string of JSON stands for, else the string."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, dict | list) else text


def called(call: Json, *path: str) -> int:
    """[10.2] a tool call: its arguments are a string that is often read and laid out again."""
    holder = json.loads(json.dumps(call))
    inner = holder
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = again(inner[path[-1]])
    return max(printed(call), printed(holder))


def _gaps(value: Json) -> int:
    if not isinstance(value, dict | list) or not value:
        return 0
    items = value.values() if isinstance(value, dict) else value
    return len(value) + 1 + (len(value) if isinstance(value, dict) else 0) + sum(map(_gaps, items))


def _lines(value: Json) -> int:
    if isinstance(value, str):
        return value.count("\n")
    if isinstance(value, dict):
        return sum(map(_lines, value.values()))
    return sum(map(_lines, value)) if isinstance(value, list) else 0


def _exponents(value: Json) -> bool:
    if isinstance(value, float):
        return "e" in repr(value)
    if isinstance(value, dict):
        return any(map(_exponents, value.values()))
    return isinstance(value, list) and any(map(_exponents, value))


def _in_full(value: Json) -> Json:
    if isinstance(value, float):
        digits = format(Decimal(repr(value)), "f")
        # As long as the number written out; what it is does not matter here.
        return int("1" * len(digits)) if len(digits) <= 22 else value
    if isinstance(value, dict):
        return {name: _in_full(item) for name, item in value.items()}
    return [_in_full(item) for item in value] if isinstance(value, list) else value


def _inlined(node: Json, root: Json) -> Json:
    if isinstance(node, list):
        return [_inlined(item, root) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str) and node["$ref"].startswith("#/$defs/"):
        return _inlined(root["$defs"][node["$ref"].removeprefix("#/$defs/")], root)
    return {name: _inlined(item, root) for name, item in node.items()}


Reader = Callable[[dict[str, Any], str], Reading]
