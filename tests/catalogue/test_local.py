"""A local run with a file: the shipped prices of its providers are there at its start, and at the next."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from spendgate.catalogue_files import rows_of
from tests.catalogue.shipped import PRICES, ROOT

FILE = """\
version: 1
providers:
  gemini: {dialect: openai, base_url: https://example.com/v1}
  mine: {dialect: anthropic, base_url: https://example.com, prices: anthropic}
prices:
  - {provider: mine, model: claude-opus-5-5, input: 5, output: 25}
routes:
  argon: [{provider: gemini, model: gemini-4-argon}]
  opus: [{provider: mine, model: claude-opus-5-5}]
budgets: {acme: {limits: {usd: {day: 5}}}}
"""
SECONDS_MAX = 90


def started(folder: Path) -> dict[str, Any]:
    """Start a gateway in a folder, return its prices and what is to be said of them, and end it."""
    command = [
        sys.executable,
        "-m",
        "spendgate.cli.main",
        "local",
        "--config",
        "spendgate.yaml",
        "--port",
        "0",
        "--json",
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "layers" / "core")}
    with subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            local = json.loads(process.stdout.readline())
            with httpx.Client(
                base_url=local["admin_url"],
                headers={"authorization": f"Bearer {local['admin_token']}"},
                trust_env=False,
            ) as http:
                return {"prices": http.get("/prices").json()["prices"], "check": http.get("/prices/check").json()}
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=SECONDS_MAX)


def test_a_local_run_has_the_shipped_prices_of_its_providers_and_keeps_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "spendgate.yaml").write_text(FILE, encoding="utf-8")

    first, second = started(tmp_path), started(tmp_path)

    assert first["prices"] == second["prices"]
    assert len(first["prices"]) == len(rows_of(PRICES / "gemini.yaml")) + len(rows_of(PRICES / "anthropic.yaml"))
    changed = [(row["model"], row["price"]["input"]) for row in first["prices"] if row["origin"] != "shipped"]
    assert changed == [("claude-opus-5-5", "5")]
    assert first["check"]["unpriced"] == []
