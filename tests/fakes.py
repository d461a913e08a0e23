"""Stand-ins that more than one test file needs."""

from typing import Any


class Lines:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def info(self, message: str, /, **fields: Any) -> None:
        self.lines.append((message, fields))

    def exception(self, message: str, /, **fields: Any) -> None:
        self.lines.append((message, fields))


class Broken:
    """The use cases of a gateway or a function whose store, or whose code, has failed."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    def __getattr__(self, name: str) -> Any:
        def fail(*args: object, **more: object) -> None:
            raise self.failure

        return fail
