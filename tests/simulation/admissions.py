"""The auditor's judgement of an admission: whose it is, what it counts on, and whether every limit had room for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from tests.simulation.books import Books
from tests.simulation.founding import ALLOWED
from tests.simulation.records import (
    Held,
    Item,
    Place,
    counter_name,
    key_place,
    limits_at,
    limits_in,
    parsed,
    period,
    text,
    within,
)


class Admissions:
    """Judges reservations as they are committed, by all that were before; what is ``seen`` is the store before it."""

    def __init__(
        self, fault: Callable[[str, str], None], held: Mapping[str, Held], seen: Mapping[Place, Item], books: Books
    ) -> None:
        self.fault = fault
        self._held = held
        self._seen = seen
        self._books = books
        self._keys: dict[tuple[str, str], str] = {}
        self._latest = datetime.min.replace(tzinfo=UTC)

    def judge(self, held: Held, policies: Mapping[str, Item], *, latest: datetime) -> None:
        """Judge one, by the policies that stood; ``latest`` is the latest time that any clock has shown."""
        self._latest = latest
        self._identified(held)
        self._asked(held)
        held.searches_max = self._searches(held, policies)
        self._counted(held, policies)
        self._limited(held, policies)

    def _identified(self, held: Held) -> None:
        """The budget is that of the key as it stands this moment, and the key is good."""
        call = held.actor.call
        key = self._seen.get(key_place(call.key_hash, minted=call.minted))
        if key is None:
            self.fault("G10", f"{held.actor.name} is admitted with a key that is not there")
            return
        leaf = key["budget"]["S"]
        expected = leaf if call.run is None else f"{leaf}/run:{call.run}"
        if held.path != expected:
            self.fault("G10", f"{held.actor.name} counts on {held.path}, its key is of {expected}")
        above = [] if "minted_by" not in key else [one["L"][0]["S"] for one in key["minted_by"]["L"]]
        records = [key, *(self._key_above(one) for one in above)]
        for record in records:
            if record is None or "revoked_at" in record:
                self.fault("G10", f"{held.actor.name} is admitted with a key that is revoked")
            elif (
                "expires_at" in record
                and "S" in record["expires_at"]
                and parsed(record["expires_at"]["S"]) <= held.created
            ):
                self.fault("G10", f"{held.actor.name} is admitted with a key that has expired")
        if held.idempotency is not None:
            name = (held.path, held.idempotency)
            earlier = self._keys.setdefault(name, held.id)
            if earlier != held.id:
                self.fault("G6", f"idempotency key {held.idempotency} of {held.path} is used for two reservations")

    def _key_above(self, key_hash: str) -> Item | None:
        return next(filter(None, (self._seen.get(key_place(key_hash, minted=one)) for one in (False, True))), None)

    def _asked(self, held: Held) -> None:
        """What is held is what the request says of itself."""
        call = held.actor.call
        if not call.sound:
            self.fault("G7", f"{held.actor.name} is admitted with a broken request")
        if held.asked["requests"] != 1 or held.asked["tool_calls"] != call.wants.results:
            self.fault("G9", f"{held.id} holds {held.asked} for one request with {call.wants.results} results of tools")

    def _searches(self, held: Held, policies: Mapping[str, Item]) -> int:
        """Return how often the provider may search: as the nearest budget says, or the route where none does."""
        searches: int | None = held.actor.call.wants.searches
        if searches is None:
            return 0
        said = [policy["allow"]["M"] for policy in policies.values() if "allow" in policy]
        named = [int(one["web_search"]["N"]) for one in said if "web_search" in one]
        allowed = named[-1] if named else ALLOWED.get(held.actor.call.route, 0)
        if not allowed or searches > allowed:
            self.fault(
                "G7", f"{held.actor.name} may search {searches or 'any number of'} times, and {allowed} are allowed"
            )
        return searches or allowed

    def _counted(self, held: Held, policies: Mapping[str, Item]) -> None:
        """It counts on what is always counted, and on all that is limited, by its own time."""
        for budget, policy in policies.items():
            pairs = {("usd", "day"), ("usd", "month"), ("usd", "life")}
            pairs |= {pair for pair in limits_in(policy) if pair[1] != "request"}
            expected = {counter_name(measure, window, held.created) for measure, window in pairs}
            if set(held.counters.get(budget, ())) != expected:
                self.fault("G9", f"{held.id} moves {held.counters.get(budget)} of {budget}, not {sorted(expected)}")

    def _limited(self, held: Held, policies: Mapping[str, Item]) -> None:
        for budget, policy in policies.items():
            if "stop" in policy:
                self.fault("G1", f"{held.actor.name} is admitted on {budget}, which is stopped")
            if "run_expires_at" in policy and held.created >= parsed(policy["run_expires_at"]["S"]):
                self.fault("G1", f"{held.actor.name} is admitted on {budget}, which has expired")
            if text(policy, "mode") == "observe":
                continue
            if "temporary" not in policy and budget in self._books.over:
                policy = {**policy, "temporary": self._books.over[budget]}  # noqa: PLW2901 - as it was a moment ago
            for (measure, window), maximum in limits_at(policy, held.created).items():
                stands = 0 if window == "request" else self.committed(budget, measure, window, held.created)
                if stands + held.asked[measure] > maximum:
                    told = f"{stands} + {held.asked[measure]} > {maximum} {measure} a {window} of {budget}"
                    self.fault("G1", f"{held.actor.name} is admitted: {told}")

    def committed(self, budget: str, measure: str, window: str, at: datetime) -> int:
        """Return what stands against a limit: settled and reserved, of all reservations whose time lies in the window."""
        # An hour is over for all as soon as one clock says so.
        hour_ago = max(at, self._latest) - timedelta(hours=1)
        total = 0
        for one in self._held.values():
            if not within(one.path, budget):
                continue
            if window == "hour":
                counts = one.open or one.created > hour_ago
            else:
                counts = window == "life" or period(window, one.created) == period(window, at)
            if counts and self._is_counted(one, budget, measure, window):
                total += one.counted[measure]
        return total

    def _is_counted(self, one: Held, budget: str, measure: str, window: str) -> bool:
        """A limit that is set later finds only money counted, and only that of the long windows."""
        return counter_name(measure, window, one.created) in one.counters[budget]
