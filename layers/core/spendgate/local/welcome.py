"""What a person sees when the local gateway is ready: a key, a call to copy, and the two lines that an SDK needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from spendgate.local.place import Local

_CURL: Final = """\
  curl {url}/v1/chat/completions \\
    -H "authorization: Bearer {key}" \\
    -H "content-type: application/json" \\
    -d '{{"model": "demo", "max_tokens": 40,
         "messages": [{{"role": "user", "content": "hello"}}]}}'
"""
_SDKS: Final = """\
  client = OpenAI(base_url="{url}/v1",
                  api_key="{key}")
  client = Anthropic(base_url="{url}",
                     api_key="{key}")
"""


def welcome(local: Local, config: Path | None) -> str:
    """Return the text of a start."""
    command = command_of(sys.argv[0])
    lines = [f"Spendgate is ready at {local.url}", ""]
    lines += [f"  warning: {warning}" for warning in local.warnings]
    if config is None:
        key = next(iter(local.keys.values()), "")
        lines += [
            f"  demo provider   {local.demo_url} (costs nothing; both dialects)",
            "  routes          demo (OpenAI), demo-claude (Anthropic), demo-gemini (Google)",
            f"  key             {key}",
            "",
            "Try it:",
            "",
            _CURL.format(url=local.url, key=key),
            "Two lines in your code (model: demo or demo-claude):",
            "",
            _SDKS.format(url=local.url, key=key),
        ]
    else:
        lines.append(f"  configuration   {config}")
        lines += [f"  key {name:<11} {secret}" for name, secret in local.keys.items()]
        if not local.keys:
            lines.append(f"  keys            made before; another: {command} keys create NAME --budget PATH")
        lines += ["", "Two lines in your code:", "", _SDKS.format(url=local.url, key="sg-...")]
    lines += [
        f"Admin             {local.admin_url}",
        f"Admin token       {local.admin_token}",
        f"State and log     {local.state_dir}",
        "",
        f"In another terminal, in this folder: {command} status",
        "Stop with Ctrl-C.",
    ]
    return "\n".join(lines)


def command_of(program: str) -> str:
    """Return how the command line was called, so that what is printed can be copied: it may not be on the PATH."""
    return program if Path(program).name == "spendgate" else "spendgate"


def farewell(*, persist: bool, state_dir: Path) -> str:
    """Return the text of an end."""
    return (
        f"\nStopping; budgets and reservations are kept in {state_dir}." if persist else "\nStopping; nothing is kept."
    )
