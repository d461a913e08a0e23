"""Run the coding agents of the registries for a turn against a gateway and the demo provider; see docs/agents.md.

    npm install --prefix FOLDER @anthropic-ai/claude-code @openai/codex opencode-ai
    python -m tools.agents --programs FOLDER [--record tests/recorded/agents]

Prints for each whether its turn was admitted, and the refusal that its user saw; exits 1 where one went otherwise than
expected. A program that is not installed is left out.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from spendgate.local.demo_book import DemoBook
from spendgate.local.demo_provider import create_app
from spendgate.local.server import LOCAL_SETTINGS, running
from spendgate.local.serving import served
from tools.agents.programs import PROGRAMS, Program
from tools.agents.recorder import Noted, Recorder
from tools.agents.shapes import headers_of, shape_of

SECONDS_MAX: Final = 60
_KEY: Final = "sg-agents-key-0000000000"
_FRAMING: Final = "{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}"
# Nobody listens there: what a program wants of anybody but the gateway fails at once.
_NOWHERE: Final = "http://127.0.0.1:9"
_ROUTES: Final = {
    "openai": ("gpt-5.6-sol", "gpt-5.5"),
    "anthropic": ("claude-opus-4-8", "claude-sonnet-5", "claude-haiku-4-5"),
    "gemini": ("gemini-3-flash",),
}


def configuration_text(provider_url: str) -> str:
    """Return a configuration whose routes have the names that the programs ask for."""
    providers, prices, routes = [], [], []
    for dialect, names in _ROUTES.items():
        base = f"{provider_url}/v1" if dialect == "openai" else provider_url
        providers.append(f"  {dialect}: {{dialect: {dialect}, base_url: '{base}', framing: {_FRAMING}}}")
        prices.append(
            f"  - {{provider: {dialect}, model: demo, input: '2.50', output: '10', context_tokens: 1000000,"
            " output_tokens_max: 64000}"
        )
        routes += [f"  {name}: [{{provider: {dialect}, model: demo}}]" for name in names]
    sections = {"providers": providers, "prices": prices, "routes": routes}
    lines = [line for name, entries in sections.items() for line in (f"{name}:", *entries)]
    team = "  team: {limits: {usd: {day: 100}}, default_output_tokens: 4096}"
    return "\n".join(
        ["version: 1", *lines, "budgets:", team, "keys:", f"  agents: {{budget: team, secret: {_KEY}}}", ""]
    )


async def turn(program: Program, binary: Path, url: str) -> str:
    """Run a program for one turn in a home of its own; return what it said."""
    with tempfile.TemporaryDirectory(prefix="agents-") as folder:
        home = Path(folder)
        (home / "work").mkdir()
        for name, text in program.files(url).items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            binary,
            *program.arguments,
            cwd=home / "work",
            # Nothing of this environment: a setting or a key in it would go along.
            env={
                "HOME": folder,
                "PATH": os.environ["PATH"],
                "TERM": "dumb",
                "HTTP_PROXY": _NOWHERE,
                "HTTPS_PROXY": _NOWHERE,
                "NO_PROXY": "127.0.0.1,localhost",
                **program.environment(url, _KEY),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), SECONDS_MAX)
        except TimeoutError:
            process.kill()
            await process.wait()
            return "(did not end in time)"
    return said.decode(errors="replace")


def recorded(program: Program, version: str, noted: list[Noted]) -> dict[str, Any]:
    """Return what is kept of a turn: the shapes of its requests."""
    return {
        "program": program.package,
        "version": version,
        "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
        "refused_with": program.refused_with,
        "requests": [
            {
                "method": one.method,
                "path": one.path,
                "query": one.query,
                "headers": headers_of(one.headers),
                "body": shape_of(one.body),
            }
            for one in noted
        ],
    }


async def main(programs: Path, record: Path | None) -> int:
    """Run every program that is installed; return the exit code."""
    failed = False
    async with AsyncExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agents-")))
        provider = await stack.enter_async_context(served(create_app(book=DemoBook())))
        config = configuration_text(provider)
        local = await stack.enter_async_context(running(config, LOCAL_SETTINGS, state_dir=state, persist=False, port=0))
        recorder = Recorder(local.url)
        stack.push_async_callback(recorder.aclose)
        url = await stack.enter_async_context(served(recorder.app))
        for program in PROGRAMS:
            binary = programs / "node_modules" / ".bin" / program.binary
            if not binary.exists():
                print(f"{program.name:<24} not installed")  # noqa: T201 - what it was started for
                continue
            recorder.noted.clear()
            said = await turn(program, binary, url)
            expected = _as_expected(program, recorder.noted, said)
            failed = failed or not expected
            surprise = "" if expected else f"   UNEXPECTED: {said[-400:]}"
            print(f"{program.name:<24} {_outcome(recorder.noted)}{surprise}")  # noqa: T201 - the same
            if record is not None:
                file = programs / "node_modules" / program.package / "package.json"
                version = json.loads(file.read_text(encoding="utf-8"))["version"]
                text = json.dumps(recorded(program, version, recorder.noted), indent=1, ensure_ascii=False)
                (record / f"{program.name}.json").write_text(f"{text}\n", encoding="utf-8")
    return 1 if failed else 0


def _as_expected(program: Program, noted: list[Noted], said: str) -> bool:
    refused = [one for one in noted if one.status >= 400]
    if program.refused_with is None:
        return bool(noted) and not refused and "demo provider" in said
    return bool(refused) and program.refused_with in said


def _outcome(noted: list[Noted]) -> str:
    refused = [one.message for one in noted if one.status >= 400]
    return f"refused: {refused[0]}" if refused else f"admitted ({len(noted)} calls)"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.agents")
    parser.add_argument("--programs", type=Path, required=True, help="the folder that npm installed them into")
    parser.add_argument("--record", type=Path, help="where the shapes of their requests are written")
    arguments = parser.parse_args()
    sys.exit(asyncio.run(main(arguments.programs.resolve(), arguments.record)))
