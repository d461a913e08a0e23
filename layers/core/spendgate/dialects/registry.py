"""The dialects by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from spendgate.dialects import (
    bedrock,
    bedrock_messages,
    gemini,
    gemini_embeddings,
    openai_chat,
    openai_completions,
    openai_embeddings,
    openai_responses,
)
from spendgate.dialects.dialect import Dialect

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            openai_chat.DIALECT,
            openai_responses.DIALECT,
            openai_embeddings.DIALECT,
            openai_completions.DIALECT,
            bedrock_messages.DIALECT,
            gemini.DIALECT,
            gemini.STREAM_DIALECT,
            gemini_embeddings.DIALECT,
            gemini_embeddings.BATCH_DIALECT,
            bedrock.DIALECT,
            bedrock.STREAM_DIALECT,
        )
    }
)

# What a provider's ``dialect`` may be: each serves every wire protocol of its family.
FAMILIES: Final = tuple(dict.fromkeys(dialect.family for dialect in DIALECTS.values()))
