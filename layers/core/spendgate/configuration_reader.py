"""``spendgate.yaml``: what a team declares, read into the core's values.

Everything that is wrong is told at once, each problem with its line: a person mends a file, not a message. A file
with all that can be said is examples/spendgate.yaml.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from spendgate import configuration_values as values
from spendgate.configuration import Configuration, KeySpec
from spendgate.configuration_checks import check_kind, check_limits, check_name, check_path, check_rows, check_warn_at
from spendgate.configuration_model import (
    AlertsEntry,
    BudgetEntry,
    CandidateEntry,
    KeyEntry,
    PriceEntry,
    ProviderEntry,
    RouteEntry,
)
from spendgate.configuration_sentences import EntryType, did_you_mean, validated
from spendgate.configuration_yaml import Findings, Place, read, shown
from spendgate.core.alert import AlertPolicy
from spendgate.core.budget import BudgetPolicy, prefixes
from spendgate.core.price import PriceRow
from spendgate.core.route import CANDIDATES_MAX, Candidate, Provider, Route, is_held
from spendgate.dialects.registry import FAMILIES

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
            check_name(self._findings, name, ("providers", name))
        providers = tuple(values.provider(name, entry) for name, entry in entries.items())
        for provider in providers:
            check_kind(self._findings, provider)
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
        check_rows(self._findings, rows)
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
            check_path(self._findings, path)
        policies: dict[str, BudgetPolicy] = {}
        for path, entry in entries.items():
            check_limits(self._findings, entry, ("budgets", path))
            if entry.alerts is not None:
                check_warn_at(self._findings, entry.alerts.warn_at, ("budgets", path, "alerts", "warn_at"))
            for prefix in prefixes(path):
                policies.setdefault(prefix, BudgetPolicy(path=prefix, rev=0))
            policies[path] = values.policy(path, entry)
        return tuple(policies[path] for path in sorted(policies, key=lambda path: path.split("/")))

    def keys(self) -> tuple[KeySpec, ...]:
        for name in self._names("keys"):
            check_name(self._findings, name, ("keys", name))
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
        check_warn_at(self._findings, entry.warn_at, ("alerts", "warn_at"))
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

    def _check_known(self, section: str, name: object, place: Place) -> None:
        """Check that a name, if it is one, stands in a section; it may belong to an entry that is wrong otherwise."""
        names = self._names(section)
        if isinstance(name, str) and name not in names:
            hint = did_you_mean(name, names) if names else ", which has none: add it there"
            self._findings.add(place, f"is not in {section} of this file{hint}")

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
