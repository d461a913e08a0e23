"""What a dialect finds in a request: everything that the bound, the policy and the route need, and no text."""

from dataclasses import dataclass
from typing import Literal

from spendgate.core.media import Media

CacheWrite = Literal["none", "short", "long"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A feature that runs at the provider and that a request switches on at ``field``.

    ``uses`` is how often at most: the request's own number, or None, which is what the operator allows, or, where
    ``states_uses``, a number that the request has to give. ``turns`` is how often the model is run at most, whatever
    the uses; None is once more than them. Each use costs one ``fee`` of the price row (None: only tokens), and
    ``tokens_each`` that are billed beside what the context holds. ``uncapped`` tells that each use puts out as much as the
    model can, whatever the output cap.

    ``uses_field`` is where the request says its number, if it can. ``stamps_uses``: what is allowed is written there where
    it says none, so only a provider that keeps to it may be sent the request; ``stamped`` tells that this was done.
    ``fees_each`` are the fees of one use, and ``hint`` by what setting a program that sends it leaves it out.
    """

    feature: str
    field: str
    uses: int | None = None
    states_uses: bool = False
    turns: int | None = None
    fee: str | None = None
    tokens_each: int = 0
    uncapped: bool = False
    uses_field: str = ""
    stamps_uses: bool = False
    stamped: bool = False
    fees_each: int = 1
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """The cost-bearing facts of one request.

    ``text_bytes`` is the greatest of the UTF-8 lengths of all text as sent, after NFC and after NFKC;
    ``json_bytes`` the greater of the compact and the ASCII-escaped length of all JSON that the provider prints
    again (tools, schemas, tool call arguments), not yet multiplied; ``parts`` counts messages and content parts.
    ``output_cap`` is None where the request has none. ``choices`` multiplies the output (OpenAI's ``n``).
    ``has_output`` is False where the answer has no tokens (embeddings), so that nothing can overshoot. ``inputs`` counts
    what the model reads apart from each other, each in a context of its own (a list of prompts, of texts to embed).
    ``tool_results`` counts the tool results that this request brings back after the last assistant message.
    ``cache_write`` is the dearest cache lifetime that the request asks the provider to write.
    ``hidden_tokens`` are those of what the provider itself writes into the prompt because the request names it (a tool).
    ``media`` are the images, documents and sound of the request, whose bytes are in no other count. ``demands`` are the
    features that run at the provider.
    """

    dialect: str
    model: str
    stream: bool = False
    text_bytes: int
    json_bytes: int = 0
    parts: int = 0
    tools: int = 0
    structured: bool = False
    output_cap: int | None = None
    choices: int = 1
    has_output: bool = True
    inputs: int = 1
    cache_write: CacheWrite = "none"
    hidden_tokens: int = 0
    tool_results: int = 0
    service_tier: str | None = None
    geo: str | None = None
    speed: str | None = None
    media: tuple[Media, ...] = ()
    demands: tuple[Demand, ...] = ()
