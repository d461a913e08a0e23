"""``spendgate.yaml``: what a team declares, read into the core's values.

Everything that is wrong is told at once, each problem with its line: a person mends a file, not a message. A file
with all that can be said is examples/spendgate.yaml.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from spendgate import configuration_values as values
from spendgate.configuration import Configuration, KeySpec
from spendgate.configuration_model import (
    AlertsEntry,
    BudgetEntry,
    CandidateEntry,
    KeyEntry,
    LimitsEntry,
    PriceEntry,
    ProviderEntry,
    RouteEntry,
)
from spendgate.configuration_sentences import EntryType, did_you_mean, validated
from spendgate.configuration_yaml import Findings, Place, read, shown
from spendgate.core.alert import AlertPolicy
from spendgate.core.budget import (
    PATH_DEPTH_MAX,
    PATH_LENGTH_MAX,
    BudgetPolicy,
    parse_path,
    prefixes,
)
from spendgate.core.kind import kind_of
from spendgate.core.price import PriceRow
from spendgate.core.route import CANDIDATES_MAX, Candidate, Provider, Route, is_held
from spendgate.dialects.registry import FAMILIES

# With its counters, a budget's item must stay under 1 KB: two write units a transaction.
LIMITS_MAX: Final = 12

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_ROUTE: Final = re.compile(r"[!-~]{1,128}", re.ASCII)
_SECTIONS: Final = ("version", "providers", "prices", "routes", "budgets", "keys", "alerts")


def parse(text: str, *, loopback_http: bool) -> Configuration:
    """Return what a file declares; ConfigurationInvalid with all of its problems.

    ``loopback_http`` is for local runs: http to loopback hosts and fixed keys are allowed.
    """
    findings = Findings()
    document = read(text, findings)
    if not isinstance(document, dict):
        findings.add((), "the file must be a mapping that starts with version: 1")
        document = {"version": 1}
    reader = _Reader(document, findings, loopback_http=loopback_http)
    reader.check_sections()
    configuration = Configuration(
        providers=reader.providers(),
        prices=reader.prices(),
        routes=reader.routes(),
        budgets=reader.budgets(),
        keys=reader.keys(),
        alerts=reader.alerts(),
    )
    findings.raise_any()
    return configuration


def parse_prices(listed: object, providers: Iterable[str], findings: Findings) -> tuple[PriceRow, ...]:
    """Return the rows of a list in the syntax of ``prices:``; what is wrong is found, at ``prices[n]``."""
    document = {"providers": dict.fromkeys(providers), "prices": listed}
    return _Reader(document, findings, loopback_http=False).prices()


class _Reader:
    """Reads section by section, and goes on after a problem, so that the later ones are found too."""

    def __init__(self, document: Mapping[str, Any], findings: Findings, *, loopback_http: bool) -> None:
        self._document = document
        self._findings = findings
        self._loopback_http = loopback_http

    def check_sections(self) -> None:
        for name in self._document:
            if name not in _SECTIONS:
                self._findings.add((name,), f"is not known here{did_you_mean(name, _SECTIONS)}")
        version = self._document.get("version")
        if "version" not in self._document:
            self._findings.add((), "version is missing: write version: 1")
        elif isinstance(version, bool) or version != 1:
            self._findings.add(("version",), "must be 1, the only version so far")

    def providers(self) -> tuple[Provider, ...]:
        entries = self._entries("providers", ProviderEntry)
        for name in self._names("providers"):
            self._check_name(name, ("providers", name))
        providers = tuple(values.provider(name, entry) for name, entry in entries.items())
        for provider in providers:
            self._check_kind(provider)
        return providers

    def prices(self) -> tuple[PriceRow, ...]:
        listed = self._document.get("prices", [])
        if not isinstance(listed, list):
            self._findings.add(("prices",), "must be a list of price rows")
            return ()
        rows: dict[int, PriceRow] = {}
        for index, item in enumerate(listed):
            self._check_known("providers", _field(item, "provider"), ("prices", index, "provider"))
            entry = self._entry(PriceEntry, item, ("prices", index))
            if entry is not None:
                rows[index] = values.price_row(entry)
        self._check_rows(rows)
        return tuple(rows.values())

    def routes(self) -> tuple[Route, ...]:
        routes = []
        self._check_mapping("routes")
        for name in self._names("routes"):
            place: Place = ("routes", name)
            if _ROUTE.fullmatch(name) is None:
                self._findings.add(place, "a route has 1 to 128 printable ASCII characters without spaces")
            listed, allow = self._document["routes"][name], {}
            if isinstance(listed, dict):
                entry = self._entry(RouteEntry, listed, place)
                listed, allow = listed.get("candidates"), {} if entry is None else entry.allow
                place = (*place, "candidates")
            candidates = self._candidates(listed, place)
            self._check_candidates(candidates, place)
            routes.append(Route(name=name, candidates=tuple(candidates.values()), allow=tuple(sorted(allow.items()))))
        return tuple(routes)

    def budgets(self) -> tuple[BudgetPolicy, ...]:
        entries = self._entries("budgets", BudgetEntry)
        for path in self._names("budgets"):
            self._check_path(path)
        policies: dict[str, BudgetPolicy] = {}
        for path, entry in entries.items():
            self._check_limits(entry, ("budgets", path))
            if entry.alerts is not None:
                self._check_warn_at(entry.alerts.warn_at, ("budgets", path, "alerts", "warn_at"))
            for prefix in prefixes(path):
                policies.setdefault(prefix, BudgetPolicy(path=prefix, rev=0))
            policies[path] = values.policy(path, entry)
        return tuple(policies[path] for path in sorted(policies, key=lambda path: path.split("/")))

    def keys(self) -> tuple[KeySpec, ...]:
        for name in self._names("keys"):
            self._check_name(name, ("keys", name))
        for name, data in self._section("keys").items():
            self._check_known("budgets", _field(data, "budget"), ("keys", name, "budget"))
            models = _field(data, "models")
            for index, model in enumerate(models if isinstance(models, list) else []):
                self._check_known("routes", model, ("keys", name, "models", index))
        keys = []
        owners: dict[str, str] = {}
        for name, entry in self._entries("keys", KeyEntry).items():
            if entry.secret is not None and owners.setdefault(entry.secret, name) != name:
                self._findings.add(
                    ("keys", name, "secret"),
                    f"is the secret of key {shown(owners[entry.secret])} too: give each key its own",
                )
            keys.append(_key_spec(name, entry))
        return tuple(keys)

    def alerts(self) -> AlertPolicy:
        entry = self._entry(AlertsEntry, self._document.get("alerts", {}), ("alerts",)) or AlertsEntry()
        self._check_warn_at(entry.warn_at, ("alerts", "warn_at"))
        return AlertPolicy(warn_at=tuple(sorted(entry.warn_at)), slack=entry.slack)

    def _section(self, name: str) -> Mapping[str, Any]:
        section = self._document.get(name, {})
        return section if isinstance(section, dict) else {}

    def _names(self, section: str) -> tuple[str, ...]:
        """Return all names of a section, whether or not what they stand for is right."""
        return tuple(self._section(section))

    def _entries(self, section: str, model: type[EntryType]) -> dict[str, EntryType]:
        """Return the entries of a section that are right by themselves."""
        self._check_mapping(section)
        found = {name: self._entry(model, data, (section, name)) for name, data in self._section(section).items()}
        return {name: entry for name, entry in found.items() if entry is not None}

    def _entry(self, model: type[EntryType], data: object, place: Place) -> EntryType | None:
        return validated(model, data, place, self._findings, loopback_http=self._loopback_http)

    def _candidates(self, listed: object, place: Place) -> dict[int, Candidate]:
        """Return the candidates of a route that are right by themselves, by their place in the list."""
        if not isinstance(listed, list) or not 1 <= len(listed) <= CANDIDATES_MAX:
            self._findings.add(place, f"must be a list of 1 to {CANDIDATES_MAX} candidates {{provider, model}}")
            return {}
        for index, item in enumerate(listed):
            self._check_known("providers", _field(item, "provider"), (*place, index, "provider"))
        entries = [self._entry(CandidateEntry, item, (*place, index)) for index, item in enumerate(listed)]
        return {
            index: Candidate(provider=entry.provider, model=entry.model)
            for index, entry in enumerate(entries)
            if entry is not None
        }

    def _check_mapping(self, section: str) -> None:
        if not isinstance(self._document.get(section, {}), dict):
            self._findings.add((section,), "must be a mapping (name: entry)")

    def _check_name(self, name: str, place: Place) -> None:
        if _NAME.fullmatch(name) is None or name.startswith(("sg-", "sk-")):
            self._findings.add(place, "a name has 1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or digit")

    def _check_kind(self, provider: Provider) -> None:
        """A kind has a dialect of its own, and an API's version is for the kind that has it in its paths."""
        kind = kind_of(provider)
        if kind.dialect != provider.dialect:
            self._findings.add(
                ("providers", provider.name, "kind"),
                f"speaks the dialect {kind.dialect}, and this provider {provider.dialect}: change the kind or the dialect",
            )
        elif provider.api_version is not None and not kind.deployments:
            self._findings.add(
                ("providers", provider.name, "api_version"),
                "goes with kind: azure only: leave it out, or say kind: azure",
            )

    def _check_known(self, section: str, name: object, place: Place) -> None:
        """Check that a name, if it is one, stands in a section; it may belong to an entry that is wrong otherwise."""
        names = self._names(section)
        if isinstance(name, str) and name not in names:
            hint = did_you_mean(name, names) if names else ", which has none: add it there"
            self._findings.add(place, f"is not in {section} of this file{hint}")

    def _check_rows(self, rows: Mapping[int, PriceRow]) -> None:
        """A name at a provider leads to the rows of one model, and an instant to one of these rows."""
        seen: dict[tuple[str, str, datetime], int] = {}
        owners: dict[tuple[str, str], str] = {(row.provider, row.model): row.model for row in rows.values()}
        for index, row in rows.items():
            first = seen.setdefault((row.provider, row.model, row.valid_from), index)
            if first != index:
                self._findings.add(
                    ("prices", index),
                    f"has provider, model and instant of prices[{first}]: a new rate needs a `from` of its own",
                )
            for at, alias in enumerate(row.aliases):
                if owners.setdefault((row.provider, alias), row.model) != row.model or alias == row.model:
                    self._findings.add(
                        ("prices", index, "aliases", at),
                        "is already the name of a model: a name leads to the prices of one",
                    )

    def _check_candidates(self, candidates: Mapping[int, Candidate], place: Place) -> None:
        providers = self._section("providers")
        first: dict[Candidate, int] = {}
        spoken: dict[str, str] = {}
        for index, candidate in candidates.items():
            if first.setdefault(candidate, index) != index:
                self._findings.add((*place, index), "is listed twice: each candidate is tried once at most")
            dialect = _field(providers.get(candidate.provider), "dialect")
            if isinstance(dialect, str) and dialect in FAMILIES:
                spoken.setdefault(dialect, candidate.provider)
            if is_held(candidate.model):
                message = "names a prompt or a router of Bedrock, whose text or model nobody can bound"
                self._findings.add((*place, index, "model"), message)
        if len(spoken) > 1:
            both = " and ".join(f"{dialect} ({shown(name)})" for dialect, name in spoken.items())
            self._findings.add(place, f"must be of one dialect, but has {both}: make a route for each")

    def _check_path(self, path: str) -> None:
        try:
            parse_path(path)
        except ValueError:
            # The core's own sentence repeats the name, which here may be anything that was pasted.
            self._findings.add(
                ("budgets", path),
                f"a budget path is 1 to {PATH_DEPTH_MAX} names with '/' between, each 1 to 64 letters, digits, '.', '_' "
                f"and '-', the first a letter or digit, and {PATH_LENGTH_MAX} characters in all (runs are not declared)",
            )

    def _check_limits(self, entry: BudgetEntry, place: Place) -> None:
        self._check_number(entry.limits, (*place, "limits"))
        if entry.runs is not None:
            self._check_number(entry.runs.limits, (*place, "runs", "limits"))
        limited = bool(values.limits(entry.limits))
        if limited and entry.unbudgeted:
            self._findings.add((*place, "unbudgeted"), "contradicts limits: leave one of them out")
        if not limited and not entry.unbudgeted:
            self._findings.add(place, "has no limits: give it some, or say unbudgeted: true")

    def _check_warn_at(self, thresholds: list[int], place: Place) -> None:
        if len(set(thresholds)) != len(thresholds):
            self._findings.add(place, "has a number twice: leave one of them out")

    def _check_number(self, entry: LimitsEntry, place: Place) -> None:
        number = len(values.limits(entry))
        if number > LIMITS_MAX:
            self._findings.add(
                place, f"has {number} limits, more than {LIMITS_MAX}: put some of them on a budget above or below it"
            )
        for measure in entry.model_fields_set:
            if not getattr(entry, measure).model_fields_set:
                self._findings.add((*place, measure), "has no window: give it one, or leave the line out")


def _key_spec(name: str, entry: KeyEntry) -> KeySpec:
    return KeySpec(
        name=name,
        budget=entry.budget,
        models=tuple(dict.fromkeys(entry.models or ())),
        expires_at=entry.expires,
        secret=entry.secret,
    )


def _field(data: object, name: str) -> object:
    return data.get(name) if isinstance(data, dict) else None
