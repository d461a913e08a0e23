"""The dialects by name, and the paths that each is served on.

A dialect is loaded when it is first asked for: a function that starts cold for one call needs no other's code.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple

from spendgate.dialects.dialect import Dialect


class Entry(NamedTuple):
    """Where a dialect is, and what of it must be known before it is loaded.

    ``paths`` are the gateway's own, in Starlette's notation; ``free_paths`` those of each of its free calls, in the
    order of ``Dialect.free``.
    """

    module: str
    attribute: str
    family: str
    paths: tuple[str, ...]
    free_paths: tuple[tuple[str, ...], ...] = ()


def _gemini_paths(action: str) -> tuple[str, ...]:
    # Google's client calls v1 since 3.x, and v1beta before; the older knows all fields of the newer.
    return tuple(f"/{version}/models/{{model}}:{action}" for version in ("v1beta", "v1"))


def _openai(module: str, path: str) -> Entry:
    return Entry(module, "DIALECT", "openai", (path,))


def _bedrock(attribute: str, action: str) -> Entry:
    # An ARN has slashes, which are no longer escaped where paths are matched.
    return Entry("bedrock", attribute, "bedrock", (f"/model/{{model:path}}/{action}",))


ENTRIES: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "openai": _openai("openai_chat", "/v1/chat/completions"),
        "openai-responses": _openai("openai_responses", "/v1/responses"),
        "openai-embeddings": _openai("openai_embeddings", "/v1/embeddings"),
        "openai-completions": _openai("openai_completions", "/v1/completions"),
        "anthropic": Entry(
            "bedrock_messages", "DIALECT", "anthropic", ("/v1/messages",), (("/v1/messages/count_tokens",),)
        ),
        "gemini": Entry(
            "gemini", "DIALECT", "gemini", _gemini_paths("generateContent"), (_gemini_paths("countTokens"),)
        ),
        "gemini-stream": Entry("gemini", "STREAM_DIALECT", "gemini", _gemini_paths("streamGenerateContent")),
        "gemini-embeddings": Entry("gemini_embeddings", "DIALECT", "gemini", _gemini_paths("embedContent")),
        "gemini-batch-embeddings": Entry(
            "gemini_embeddings", "BATCH_DIALECT", "gemini", _gemini_paths("batchEmbedContents")
        ),
        "bedrock-converse": _bedrock("DIALECT", "converse"),
        "bedrock-converse-stream": _bedrock("STREAM_DIALECT", "converse-stream"),
    }
)

# What a provider's ``dialect`` may be: each serves every wire protocol of its family.
FAMILIES: Final = tuple(dict.fromkeys(entry.family for entry in ENTRIES.values()))


@cache
def _loaded(name: str) -> Dialect:
    entry = ENTRIES[name]
    dialect: Dialect = getattr(import_module(f"spendgate.dialects.{entry.module}"), entry.attribute)
    return dialect


class _Dialects(Mapping[str, Dialect]):
    """Each dialect by its name, loaded as it is asked for."""

    def __getitem__(self, name: str) -> Dialect:
        return _loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


DIALECTS: Final[Mapping[str, Dialect]] = _Dialects()
