"""The beta names of Anthropic that may be sent, each with the reason why it changes nothing of what a call costs at most.

Sources: the beta names of anthropic-python 2.14.0, Claude docs (2026-08), and what Claude Code 2.1.197 sends; read on
2026-11-29 and 30. A name that is not here is refused: it may change what is billed, or how much the model does.
"""

from typing import Final

# The day on which the list below was last read against its sources.
CHECKED: Final = "2026-11-30"

_CHECKED: Final = "unlocks fields and blocks, each of which is bounded or refused by itself"
_FORM: Final = "changes the form of the answer or of its events, not its tokens"
_CAPPED: Final = "changes how the model uses its output, which max_tokens caps"
_DEFAULT: Final = "has become the default"
_CLIENT_TOOL: Final = "unlocks tools that the caller runs; each version is known or refused"
_EDITS: Final = "unlocks edits: clearing makes the input smaller, compaction is allowed by a budget or refused"

FREE_BETAS: Final[dict[str, str]] = {
    "advanced-tool-use-2025-11-20": _CHECKED,
    "cache-diagnosis-2026-04-07": _FORM,
    "claude-code-20250219": "says who calls",
    "compact-2026-01-12": _EDITS,
    "computer-use-2025-01-24": _CLIENT_TOOL,
    "computer-use-2025-11-24": _CLIENT_TOOL,
    "context-1m-2025-08-07": "lets a prompt be longer: its bytes are counted, and the tier of long prompts is reserved",
    "context-management-2025-06-27": _EDITS,
    "dev-full-thinking-2025-05-14": _FORM,
    "effort-2025-11-24": _CAPPED,
    "extended-cache-ttl-2025-04-11": "unlocks the long lifetime of the cache, whose rate is reserved where it is asked for",
    "fast-mode-2026-02-01": "unlocks speed, whose factor is reserved where it is asked for",
    "files-api-2025-04-14": "unlocks files by their id, which are bounded by the context",
    "fine-grained-tool-streaming-2025-05-14": _FORM,
    "interleaved-thinking-2025-05-14": _CAPPED,
    "message-batches-2024-09-24": "unlocks another path, which is not served",
    "mid-conversation-system-2026-04-07": "lets a message have the role system; its text is counted as any other",
    "model-context-window-exceeded-2025-08-26": _FORM,
    "output-128k-2025-02-19": _CAPPED,
    "pdfs-2024-09-25": _DEFAULT,
    "prompt-caching-2024-07-31": _DEFAULT,
    "prompt-caching-scope-2026-01-05": "says who shares a cache entry; its rates are the same",
    "redact-thinking-2026-02-12": _FORM,
    "structured-outputs-2025-11-13": _CHECKED,
    "structured-outputs-2025-12-15": _CHECKED,
    "task-budgets-2026-03-13": _CAPPED,
    "thinking-binding-controls-2026-08-01": _FORM,
    "thinking-display-updates-2026-08-18": _FORM,
    "thinking-token-count-2026-05-13": _FORM,
    "token-counting-2024-11-01": _DEFAULT,
    "token-efficient-tools-2025-02-19": _CAPPED,
    "tool-search-tool-2025-10-19": _CHECKED,
    "web-fetch-2025-09-10": _CHECKED,
    "web-search-2025-03-05": _CHECKED,
}
