"""The manners of the suite's provider: how it answers a call, whatever the work was."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a call is answered.

    ``name``: ok, hang, reset, error (``status``, after the work or, with ``unbilled``, without it), cut, ends_early,
    error_in_stream, no_usage, garbage, redirect. ``usage_text`` takes the place of the usage, be it JSON or not;
    ``each_frame`` reports the usage so far on every frame of a stream.
    """

    name: str = "ok"
    status: int = 500
    unbilled: bool = False
    usage_text: str | None = None
    usage_fields: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    gzipped: bool = False
    each_frame: bool = False
    delay_seconds: float = 0
    between_seconds: float = 0


OK: Final = Manner()
