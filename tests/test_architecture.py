"""Imports go one way, and what is called pure is pure; read from the source, so that nothing needs to run."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYER = ROOT / "layers" / "core"

# What each part may import of Spendgate: functions -> use cases -> store, providers -> core, dialects -> errors.
# "use cases" are the modules directly under spendgate/; `settings` and `observability` serve every part that does I/O.
FOUNDATIONS = {"errors", "core", "dialects", "settings", "observability"}
USE_CASES = FOUNDATIONS | {"store", "providers", "use cases"}
MAY_IMPORT = {
    "errors": set[str](),
    "core": {"errors", "core"},
    "dialects": {"errors", "core", "dialects"},
    "settings": {"errors", "core", "settings"},
    "observability": {"errors", "core", "observability"},
    "store": FOUNDATIONS | {"store"},
    "providers": FOUNDATIONS | {"providers"},
    "use cases": USE_CASES,
    "local": USE_CASES | {"local"},
    "cli": USE_CASES | {"local", "cli"},
    "functions": USE_CASES | {"functions"},
}
PURE = {"errors", "core", "dialects"}

# Modules of the standard library that hold values and compute; none knows the time, the machine or the network.
VALUE_MODULES = {
    "abc", "base64", "binascii", "bisect", "collections", "collections.abc", "dataclasses", "datetime", "decimal",
    "enum", "functools", "graphlib", "hashlib", "heapq", "hmac", "ipaddress", "itertools", "json", "math", "operator", "re",
    "string", "struct", "textwrap", "types", "typing", "unicodedata", "urllib.parse",
}  # fmt: skip

# Modules that are no values and yet pure here, each with the one module that may import it.
PURE_ELSEWHERE = {
    "botocore.eventstream": "spendgate.dialects.eventstream",
    # Loads a dialect when it is first asked for.
    "importlib": "spendgate.dialects.registry",
}

IMPURE = {"open", "print", "input", "exec", "eval", "__import__"}

# Third parties that have one place.
PLACES = {
    "boto3": {"store"},
    "botocore": {"store", "providers"},
    "httpx": {"providers", "local", "cli"},
    "httpcore": {"providers"},
    "click": {"cli"},
    "rich": {"cli"},
}
# May read the process's environment; everything else is given a mapping.
READS_ENVIRONMENT = {"functions", "cli", "local"}

# What a call may pass through must start fast and carry nothing that could call a provider by itself.
HOT_PATH = ("gateway", "admission", "metering", "directory", "store.ledger", "providers.attempt", "dialects.registry")
# (click and rich are no names for this list: httpx takes them along where they happen to be installed.)
NOT_ON_THE_HOT_PATH = (
    "pydantic", "openai", "anthropic", "aws_xray_sdk", "aws_lambda_powertools.tracing", "yaml",
    "ministack", "moto", "requests", "spendgate.cli", "spendgate.local", "spendgate.admin",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module of the project: its dotted name, the part it belongs to, and its source as a tree."""

    name: str
    part: str
    tree: ast.Module

    @classmethod
    def parsed(cls, name: str, source: str) -> "Module":
        first, _, rest = name.partition(".")
        if first == "functions":
            return cls(name=name, part="functions", tree=ast.parse(source))
        part = rest.partition(".")[0]
        return cls(name=name, part=part if part in MAY_IMPORT else "use cases", tree=ast.parse(source))


def _modules() -> list[Module]:
    files = [(path, LAYER) for path in (LAYER / "spendgate").rglob("*.py")]
    files += [(path, ROOT) for path in (ROOT / "functions").rglob("*.py")]
    return [
        Module.parsed(
            ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"), path.read_text()
        )
        for path, base in sorted(files)
    ]


MODULES = _modules()


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_a_module_imports_and_does_only_what_its_part_may(module: Module) -> None:
    assert list(_faults(module)) == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = {module.name for module in MODULES}
    graph = {
        module.name: {name for name in _imports(module.tree) if name in known} - {module.name} for module in MODULES
    }

    # Raises CycleError, which names the modules.
    assert len(list(TopologicalSorter(graph).static_order())) == len(known)


def test_a_call_passes_through_nothing_slow_or_billable_of_itself() -> None:
    present = [name for name in HOT_PATH if (LAYER / "spendgate" / f"{name.replace('.', '/')}.py").exists()]
    program = (
        "import sys\n"
        + "".join(f"import spendgate.{name}\n" for name in present)
        + "list(spendgate.dialects.registry.DIALECTS.values()); print(*sys.modules)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(LAYER)}, capture_output=True, text=True, check=True
    )

    loaded = ran.stdout.split()
    assert [
        name for name in loaded if any(name == bad or name.startswith(bad + ".") for bad in NOT_ON_THE_HOT_PATH)
    ] == []


def test_each_function_has_one_composition_root() -> None:
    folders = [path for path in (ROOT / "functions").glob("*") if path.is_dir() and list(path.rglob("*.py"))]

    assert [folder.name for folder in folders if not (folder / "app.py").exists()] == []
    assert [module.name for module in MODULES if module.part != "functions" and "functions" in _roots(module)] == []


@pytest.mark.parametrize(
    ("name", "source", "fault"),
    [
        ("spendgate.core.bad", "from spendgate.store import ledger", "imports spendgate.store"),
        ("spendgate.core.bad", "import spendgate.dialects.sse", "imports spendgate.dialects.sse"),
        ("spendgate.store.bad", "from spendgate import gateway", "imports spendgate.gateway"),
        ("spendgate.gateway", "from spendgate.cli.main import main", "imports spendgate.cli.main"),
        ("spendgate.providers.bad", "from spendgate.store.ledger import Ledger", "imports spendgate.store.ledger"),
        ("spendgate.errors", "import spendgate.core.money", "imports spendgate.core.money"),
        ("spendgate.core.bad", "def f():\n    import os", "imports os"),
        ("spendgate.core.bad", "from time import time", "imports time"),
        ("spendgate.core.bad", "from urllib import request", "imports urllib.request"),
        ("spendgate.dialects.bad", "import logging", "imports logging"),
        ("spendgate.dialects.bad", "import pydantic", "imports pydantic"),
        (
            "spendgate.dialects.bad",
            "from botocore.eventstream import EventStreamBuffer",
            "imports botocore.eventstream",
        ),
        ("spendgate.core.bad", "from datetime import datetime\nx = datetime.now()", "reads the clock"),
        ("spendgate.core.bad", "import datetime as d\nx = d.date.today()", "reads the clock"),
        ("spendgate.dialects.bad", "print('x')", "calls print"),
        ("spendgate.core.bad", "x = float('1')", "calls float"),
        ("spendgate.core.bad", "x = 0.1", "has the float 0.1"),
        ("spendgate.core.bad", "x = a / b", "divides"),
        ("spendgate.core.bad", "a /= 2", "divides"),
        ("spendgate.gateway", "import boto3", "imports boto3"),
        ("spendgate.local.bad", "from botocore.config import Config", "imports botocore.config"),
        ("spendgate.admin", "import httpx", "imports httpx"),
        ("spendgate.gateway", "import os\nx = os.environ['A']", "reads the environment"),
        ("spendgate.store.bad", "from os import getenv", "reads the environment"),
        ("functions.gateway.app", "import spendgate.local.serving", "imports spendgate.local.serving"),
        ("spendgate.core.bad", "from .money import usd", "imports relatively"),
    ],
)
def test_the_check_finds(name: str, source: str, fault: str) -> None:
    found = list(_faults(Module.parsed(name, source)))

    assert any(fault in one for one in found), found


def test_the_check_lets_pass_what_is_right() -> None:
    source = "import json\nfrom datetime import datetime\nfrom spendgate.errors import NotFound\nx = 7 // 2\n"

    assert list(_faults(Module.parsed("spendgate.core.good", source))) == []


def _faults(module: Module) -> Iterator[str]:
    yield from _imports_that_go_wrong(module)
    if module.part in PURE:
        yield from _impure_calls(module.tree)
    if module.part == "core":
        yield from _inexact(module.tree)
    if module.part not in READS_ENVIRONMENT and _reads_environment(module.tree):
        yield "reads the environment"


def _imports_that_go_wrong(module: Module) -> Iterator[str]:
    for name in _imports(module.tree):
        root = name.partition(".")[0]
        if root == "":
            yield "imports relatively"
        elif root in {"spendgate", "functions"}:
            if _part_of(name) not in MAY_IMPORT[module.part]:
                yield f"{module.part} imports {name}"
        elif PURE_ELSEWHERE.get(name) == module.name:
            continue
        elif (module.part in PURE and name not in VALUE_MODULES) or module.part not in PLACES.get(root, {module.part}):
            yield f"{module.part} imports {name}"


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports, wherever in it; of ``from x import y`` the module y, where x is only a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield ""
            elif node.module in PACKAGES:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


# Packages that hold nothing of their own: what is imported from them is a module.
PACKAGES = {"spendgate", "urllib", "concurrent", "xml", *(f"spendgate.{part}" for part in MAY_IMPORT)}


def _part_of(name: str) -> str:
    return Module.parsed(name, "").part


def _roots(module: Module) -> set[str]:
    return {name.partition(".")[0] for name in _imports(module.tree)}


def _impure_calls(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}:
            yield f"reads the clock in line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE:
            yield f"calls {node.func.id} in line {node.lineno}"


def _inexact(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
            yield f"calls float in line {node.lineno}"
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield f"has the float {node.value} in line {node.lineno}"
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield f"divides in line {node.lineno}"


def _reads_environment(tree: ast.Module) -> bool:
    names = {"environ", "environb", "getenv"}
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names and _is_os(node.value))
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and any(a.name in names for a in node.names))
        for node in ast.walk(tree)
    )


def _is_os(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "os"
