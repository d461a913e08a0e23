"""What a Gemini answer tells of searches and of pages that were read: fees that stand in no count of tokens."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from spendgate.core.feature import WEB_FETCH, WEB_SEARCH
from spendgate.core.usage import COUNT_MAX
from spendgate.dialects.dialect import Request

_QUERIES: Final = ("webSearchQueries", "imageSearchQueries")
# Grounding on maps, and on an index of one's own: other fees, which nobody can allow.
_OTHERS: Final = ("googleMapsWidgetContextToken", "retrievalQueries")
_OTHER_CHUNKS: Final = ("maps", "retrievedContext")
# Models before Gemini 3 bill each grounded prompt, later ones each query (Google's price list, by docs/dialects.md).
_BY_PROMPT: Final = ("gemini-1.", "gemini-2.")


class Grounding:
    """The searches of one answer, merged over its frames."""

    def __init__(self, request: Request | None) -> None:
        demands = () if request is None else request.facts.demands
        self._allowed = frozenset(demand.feature for demand in demands)
        # By candidate: how often each query was told. Frames repeat what was told, or tell what is new.
        self._queries: dict[Any, Counter[str]] = {}
        self._grounded: set[Any] = set()
        # Whether something was told that cannot be counted, or that nobody has allowed.
        self.unclear = False

    def take(self, candidate: Mapping[str, Any]) -> None:
        """Read one candidate of a frame."""
        if candidate.get("urlContextMetadata") and WEB_FETCH not in self._allowed:
            self.unclear = True
        metadata = candidate.get("groundingMetadata")
        if not metadata:
            return
        if not isinstance(metadata, dict) or _is_other(metadata):
            self.unclear = True
            return
        if not any(metadata.values()):
            return
        told = [query for name in _QUERIES for query in _listed(metadata.get(name))]
        if WEB_SEARCH in self._allowed:
            self._add(str(candidate.get("index", 0)), told)
        elif told or WEB_FETCH not in self._allowed:
            self.unclear = True

    def fees(self, model: str | None) -> tuple[tuple[str, int], ...]:
        """Return the units of fees; ``model`` is the one that says of itself that it answered."""
        if not self._grounded:
            return ()
        # Grounded without a word of its queries is at least one.
        units = sum(max(1, self._queries[index].total()) for index in self._grounded)
        if model is not None and model.startswith(_BY_PROMPT):
            units = 1
        return ((WEB_SEARCH, min(units, COUNT_MAX)),)

    def _add(self, index: str, told: list[Any]) -> None:
        if not all(isinstance(query, str) for query in told):
            self.unclear = True
            return
        self._grounded.add(index)
        known, new = self._queries.get(index, Counter()), Counter(told)
        self._queries[index] = new if known <= new else known if new <= known else known + new


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _is_other(metadata: Mapping[str, Any]) -> bool:
    """Tell grounding with other fees, and what cannot be read."""
    if any(metadata.get(name) for name in _OTHERS):
        return True
    chunks = _listed(metadata.get("groundingChunks"))
    return any(not isinstance(chunk, dict) or any(name in chunk for name in _OTHER_CHUNKS) for chunk in chunks)
