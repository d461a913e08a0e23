"""The docs are held to the code: links, settings, errors, endpoints, items, commands, and the examples run."""

import json
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

import click
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from spendgate import configuration_reader, settings
from spendgate.admin import Admin
from spendgate.admin_warnings import unpriced
from spendgate.asgi import create_app
from spendgate.catalogue import rows_for
from spendgate.catalogue_files import catalogue_in
from spendgate.cli.main import cli
from spendgate.core.budget import Stop
from spendgate.core.reservation import STATES
from spendgate.core.route import Framing
from spendgate.core.window import MEASURES, WINDOWS
from spendgate.dialects.registry import DIALECTS
from spendgate.errors import OverBudget, RefusalFacts, Refused
from spendgate.local.admin_api import admin_routes
from spendgate.store import items
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.price_items import decode_row, row_text
from spendgate.store.values import decode_item
from tests.operators import FILE, Clock, admit, lose, settle

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
SECONDS_MAX: Final = 90

_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


@cache
def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _blocks(name: str, language: str) -> list[str]:
    return [code for kind, code in _BLOCK.findall(_text(name)) if kind == language]


def _prose(path: Path) -> str:
    """Return a page without its code, in blocks or in a line."""
    return re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", path.read_text(encoding="utf-8")))


def _anchors(path: Path) -> set[str]:
    headings = _HEADING.findall(_BLOCK.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# -- links, words, lines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    lost = []
    for link in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            lost.append(link)

    assert lost == []


def test_every_page_can_be_reached_from_the_readme_and_from_the_first_page() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    from_readme = {Path(link).name for link in _LINK.findall(_text("README.md"))}
    from_first = {Path(link).name for link in _LINK.findall(_text("docs/architecture.md"))} | {"architecture.md"}

    assert pages - from_readme == set()
    assert pages - from_first == set()


# A second word for what has one (docs/glossary.md), and words that sell.
SECOND_WORDS: Final = {
    r"\b(a|the|each|every|its|open) holds?\b": "reservation",
    r"\bestimates?\b": "bound",
    r"\bquotas?\b": "limit",
    r"\bvirtual keys?\b": "key",
    r"\bfallback (model|provider)s?\b": "candidate",
    r"\bupstreams?\b": "provider",
    r"\bvendors?\b": "provider",
    r"\brefund": "release",
    r"\bkill[- ]switch": "stop",
    r"\b(blazing|seamless|powerful|robust|cutting-edge|effortless|simply|easily|just works)\b": "(nothing)",
}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "glossary.md"], ids=lambda page: page.name)
def test_the_docs_have_one_word_a_concept(page: Path) -> None:
    prose = _prose(page)
    found = {
        match.group(): word
        for pattern, word in SECOND_WORDS.items()
        for match in re.finditer(pattern, prose, re.IGNORECASE)
    }

    assert found == {}


def test_the_glossary_has_every_word_that_names_a_state_or_a_limit() -> None:
    glossary = _text("docs/glossary.md")

    assert [word for word in (*MEASURES, *WINDOWS) if f"`{word}`" not in glossary] == []
    assert [state for state in STATES if f"`{state}`" not in _text("docs/ledger.md")] == []


# -- settings, errors, endpoints, commands ---------------------------------------------------------------------------


def _rows(page: str) -> list[list[str]]:
    """Return the cells of every table row of a page."""
    lines = [line for line in _text(page).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("field", fields(settings.Settings), ids=lambda field: field.name)
def test_every_setting_stands_in_its_page_with_its_default_and_its_bounds(field: Any) -> None:
    name = f"`{settings.PREFIX}{field.name.upper()}`"
    row = next(row for row in _rows("docs/settings.md") if row[0] == name)

    default = "not set" if field.default is None else str(field.default)
    assert row[1].strip("`") == default
    bounds = settings._BOUNDS.get(field.name)
    assert row[2] == ("text" if bounds is None else f"{bounds[0]} to {bounds[1]}")


def test_no_setting_is_documented_that_is_not_read() -> None:
    told = {row[0].strip("`") for row in _rows("docs/settings.md") if row[0].startswith("`SPENDGATE_")}
    known = {settings.PREFIX + field.name.upper() for field in fields(settings.Settings)}

    assert {name for name in told - known if "," not in name} == {"SPENDGATE_STATE"}


def _refusals(root: type[Refused] = Refused) -> Iterator[type[Refused]]:
    for kind in root.__subclasses__():
        yield kind
        yield from _refusals(kind)


# A class that a test makes is no refusal of the gateway's.
REFUSALS: Final = [kind for kind in _refusals() if kind.__module__ == "spendgate.errors"]


@pytest.mark.parametrize("kind", REFUSALS, ids=lambda kind: kind.code)
def test_every_refusal_stands_in_its_page_with_its_status(kind: type[Refused]) -> None:
    row = next(row for row in _rows("docs/errors.md") if row[0] == f"`{kind.code}`")

    assert str(kind.status) in row[1].split(", ")
    assert row[2] == ("yes" if kind.retryable else "no")
    assert all(row[4:6])


def test_no_refusal_is_documented_that_does_not_exist() -> None:
    codes = {row[0].strip("`") for row in _rows("docs/errors.md") if len(row) == 6} - {"code"}

    assert codes == {kind.code for kind in REFUSALS}


REFUSAL: Final = OverBudget(
    "budget demo/runaway has 0.000605 left of 0.001 USD in its lifetime; this call may need 0.0007675 USD",
    facts=RefusalFacts(
        budget="demo/runaway",
        measure="usd",
        window="life",
        maximum="0.001",
        settled="0.000395",
        reserved="0",
        unknown="0",
        asked="0.0007675",
        fits_output_tokens=23,
        next_action="set the output cap to 23 tokens or less, or ask for a higher limit on demo/runaway",
    ),
)


@pytest.mark.parametrize(("number", "dialect"), [(0, "openai"), (1, "anthropic"), (2, "gemini")])
def test_the_page_shows_a_refusal_as_each_dialect_says_it(number: int, dialect: str) -> None:
    shown = json.loads(_blocks("docs/errors.md", "json")[number])

    assert shown == DIALECTS[dialect].refusal(REFUSAL, "")


@pytest.mark.parametrize("field", fields(RefusalFacts), ids=lambda field: field.name)
def test_every_fact_of_a_refusal_is_explained(field: Any) -> None:
    told = {"fits_output_tokens": "max_output_tokens", "measure": "measure", "window": "window", "maximum": "maximum"}
    facts = _text("docs/errors.md").partition("## Facts")[2].partition("## ")[0]

    assert f"`{told.get(field.name, field.name)}`" in facts


def _endpoints() -> set[str]:
    app = create_app(None, settings=settings.Settings(), log=None)  # type: ignore[arg-type]
    routes = [*app.routes, *Starlette(routes=admin_routes(None, "token")).routes]  # type: ignore[arg-type]
    return {
        f"{method} {route.path.replace(':path}', '}')}"
        for route in routes
        if isinstance(route, Route) and "rest:path" not in route.path and route.path != "/admin"
        for method in (route.methods or set()) - {"HEAD"}
    }


def test_exactly_the_endpoints_that_exist_stand_in_their_page() -> None:
    told = {row[0].strip("`") for row in _rows("docs/api.md") if re.match(r"`(GET|POST|DELETE|PUT) /", row[0])}

    assert told == _endpoints()


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _commands(inner, f"{path} {name}")


COMMANDS: Final = dict(_commands(cli, "spendgate"))


def test_every_command_stands_in_its_page() -> None:
    headings = _HEADING.findall(_BLOCK.sub("", _text("docs/cli.md")))

    assert sorted(set(COMMANDS) - set(headings)) == []


def _command_lines() -> list[tuple[str, str]]:
    """Return every ``spendgate ...`` that a page shows, in a block or in a line."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = "\n".join(code for kind, code in _BLOCK.findall(text) if kind == "sh")
        lines = re.findall(r"^(?:\.venv/bin/)?(spendgate [^#\n]+)", blocks, re.MULTILINE)
        lines += re.findall(r"`(?:\.venv/bin/)?(spendgate [a-z][^`\n]*)`", _BLOCK.sub("", text))
        found += [(page.name, line.strip()) for line in lines if page.name != "cli.md"]
    return sorted(set(found))


@pytest.mark.parametrize(("page", "line"), _command_lines())
def test_a_command_that_a_page_shows_exists_with_its_options(page: str, line: str) -> None:
    words = [word for word in shlex.split(line.replace("...", ""))[1:] if word]
    command: click.Command = cli
    while words and isinstance(command, click.Group) and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}

    assert command is not cli
    assert [word for word in words if word.startswith("-") and word not in known] == []


def test_a_make_target_that_a_page_shows_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", _text("Makefile"), re.MULTILINE))
    shown = {word for page in PAGES for word in re.findall(r"\bmake ([a-z-]+)\b", "\n".join(_code_of(page)))}

    assert shown - targets == set()


def _code_of(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [code for kind, code in _BLOCK.findall(text) if kind == "sh"] + re.findall(r"`(make [^`\n]+)`", text)


# -- the first page --------------------------------------------------------------------------------------------------


def test_each_guarantee_stands_on_the_first_page_with_tests_that_exist() -> None:
    page = _text("docs/architecture.md")
    promised = [row[0] for row in _rows("docs/architecture.md") if re.fullmatch(r"G\d+", row[0])]
    held = dict(re.findall(r"^- (G\d+): (.+)$", page, re.MULTILINE))

    assert promised == list(held) == [f"G{number}" for number in range(1, 11)]
    named = [test for tests in held.values() for test in re.findall(r"`(tests/[^`]+\.py)::(\w+)`", tests)]
    assert [one for one in named if f"def {one[1]}(" not in _text(one[0])] == []
    assert all("::" in tests for tests in held.values())


def test_each_dependency_is_argued_for() -> None:
    project = _text("pyproject.toml")
    wanted = re.findall(r'^ {4}"([a-z0-9-]+)', project.partition("\ndev = [")[0], re.MULTILINE)
    told = _text("docs/architecture.md").partition("## Dependencies")[2].partition("\n## ")[0]

    assert [name for name in wanted if not re.search(rf"\b{name}\b", told)] == []


# -- the data model --------------------------------------------------------------------------------------------------


def _examples() -> dict[str, dict[str, Any]]:
    """Return the examples of the data model by their kind."""
    return {item["pk"].partition("#")[0]: item for item in map(json.loads, _blocks("docs/data-model.md", "json"))}


def _without_none(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}


def test_the_example_of_a_budget_is_what_the_store_writes_of_it() -> None:
    example = _examples()["BUDGET"]
    state = items.decode_budget(example)

    written = {
        **items.budget_key(state.policy.path),
        **_without_none(items.policy_attributes(state.policy)),
        "rev": state.policy.rev,
        "stop": items.stop_attribute(state.policy.stop or _unstopped()),
        "created_at": example["created_at"],
        "reserved": state.reserved,
        "unknown": state.unknown,
        **state.counters,
    }
    assert written == example


def _unstopped() -> Stop:
    raise AssertionError("the example is stopped")


def test_the_example_of_a_reservation_is_what_the_store_writes_of_it() -> None:
    example = _examples()["RES"]

    written = _without_none(items.encode_reservation(items.decode_reservation(example)))

    # The TTL is written by the resolution, beside the record.
    assert written | {"expires_at": example["expires_at"]} == example


def test_the_example_of_a_price_row_is_what_the_store_writes_of_it() -> None:
    example = _examples()["PRICE"]
    row = decode_row(example["row"])

    assert row_text(row) == example["row"]
    assert example["pk"] == f"PRICE#{row.provider}#{row.model}"


def test_every_item_that_a_run_writes_stands_in_the_data_model_with_its_attributes(
    ledger: Ledger, config: Config
) -> None:
    clock = Clock()
    admin = Admin(ledger, config, clock=clock, randomness=secrets.token_bytes)
    admin.apply(FILE, by="ada")
    settle(ledger, admit(ledger, clock(), held="0.10"), clock(), cost="0.04")
    lost = admit(ledger, clock(), held="0.10", number=1)
    lose(ledger, lost, clock())
    clock.turn(hours=1)
    admin.reconcile(lost.id, action="charge", cost=None, evidence="no record at the provider", by="ada")
    admit(ledger, clock(), held="0.10", number=2)
    admin.stop(lost.path, reason="ticket 311", by="ada")
    admin.keys.revoke("triage-prod", by="ada")

    page, examples = _text("docs/data-model.md"), _examples()
    unknown = set()
    for table in (ledger.table, config.table):
        for raw in ledger.client.scan(TableName=table)["Items"]:
            item = decode_item(raw)
            kind = item["pk"].partition("#")[0]
            told = set(examples.get(kind, ()))
            names = {name for name in item if not items.is_counter(name)} - told
            unknown |= {f"{kind}: {name}" for name in names if f"`{name}`" not in page}
    assert unknown == set()


# -- examples that run -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Run ``spendgate local`` as the README says, on a free port, and hand out its line of JSON."""
    command = [sys.executable, "-m", "spendgate.cli.main", "local", "--port", "0", "--json"]
    folder = tmp_path_factory.mktemp("local")
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "layers" / "core")}
    with subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=SECONDS_MAX)


def _ran(code: str, local: Mapping[str, Any]) -> str:
    environ = {
        **os.environ,
        "SPENDGATE_URL": local["url"],
        "SPENDGATE_ADMIN_TOKEN": local["admin_token"],
        "PYTHONWARNINGS": "ignore",
    }
    here = code.replace("http://127.0.0.1:8787", local["url"])
    ran = subprocess.run(
        [sys.executable, "-c", here], env=environ, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_the_code_in_the_readme_and_the_api_page_runs(local: dict[str, Any]) -> None:
    codes = dict.fromkeys([*_blocks("README.md", "python"), *_blocks("docs/api.md", "python")])

    printed = [_ran(code, local) for code in codes]

    said = "The demo provider says what it is told and bills what it\n"
    refused = "402 request_too_expensive {'max_output_tokens': "
    assert [text if not text.startswith(refused) else refused for text in printed] == [
        said,
        said,
        said,
        refused,
        "ticket 311\n",
    ]


def test_the_configurations_that_are_shown_are_right() -> None:
    shown = [*_blocks("README.md", "yaml"), _text("examples/spendgate.yaml")]

    for text in shown:
        parsed = configuration_reader.parse(text, loopback_http=False)
        shipped = rows_for(parsed.providers, catalogue_in(ROOT / "functions" / "catalogue" / "prices"))
        assert [*unpriced(parsed.routes, (*parsed.prices, *shipped), Clock().now)] == []


def test_the_framing_table_has_the_defaults() -> None:
    told = {row[0].strip("`"): row[1] for row in _rows("docs/pricing.md")}

    assert {name: told[name] for name in asdict(Framing())} == {k: str(v) for k, v in asdict(Framing()).items()}
