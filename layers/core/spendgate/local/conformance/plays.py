"""What many cases do, and look for afterwards."""

from collections.abc import Callable
from typing import Any

from spendgate.local.conformance.case import Missed, Stand


def whole(stand: Stand) -> None:
    """Call until the limit is reached."""
    stand.spend(most=24)


def streamed(stand: Stand) -> None:
    """Call for streams until the limit is reached."""
    stand.spend(stand.body(stream=True), most=24)


def asking(**fields: Any) -> Callable[[Stand], None]:
    """Return a play: calls with these fields until the limit is reached."""

    def play(stand: Stand) -> None:
        stand.spend(stand.body(**fields), most=24)

    return play


def exactly(play: Callable[[Stand], None]) -> Callable[[Stand], None]:
    """Return a play after which more must not be booked than was billed, but for a hundredth."""

    def played(stand: Stand) -> None:
        play(stand)
        books = stand.session.books()
        settled = books.booked - (books.held or 0)
        if settled * 100 > stand.provider.billed * 101:
            raise Missed(f"{settled} picodollars are booked for {stand.provider.billed} that were billed")

    return played
