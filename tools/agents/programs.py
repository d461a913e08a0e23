"""The coding agents that package registries offer, each with the settings that point it at a gateway."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# The name of the variable is the reader's own choice; it holds a key of the gateway.
KEY_NAME: Final = "SPENDGATE_KEY"
PROMPT: Final = "Say hello"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program with one set of settings. ``files`` and ``environment`` take the gateway's address and a key."""

    name: str
    package: str
    binary: str
    arguments: tuple[str, ...]
    environment: Callable[[str, str], dict[str, str]]
    files: Callable[[str], dict[str, str]] = lambda _url: {}
    # What its user sees where the gateway refuses the default turn.
    refused_with: str | None = None


def _claude(url: str, key: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _named(_url: str, key: str) -> dict[str, str]:
    return {
        KEY_NAME: key,
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


def _codex_config(url: str) -> dict[str, str]:
    return {
        ".codex/config.toml": f"""\
model = "gpt-5.6-sol"
model_provider = "spendgate"

[model_providers.spendgate]
name = "Spendgate"
base_url = "{url}/v1"
env_key = "{KEY_NAME}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
    }


def _opencode_config(url: str) -> dict[str, str]:
    providers = (
        ("spendgate", "openai-compatible", "/v1", "gpt-5.6-sol"),
        ("spendgate-openai", "openai", "/v1", "gpt-5.6-sol"),
        ("spendgate-anthropic", "anthropic", "/v1", "claude-sonnet-5"),
        ("spendgate-google", "google", "/v1beta", "gemini-3-flash"),
    )
    entries = {
        name: {
            "npm": f"@ai-sdk/{package}",
            "name": name,
            "options": {"baseURL": f"{url}{path}", "apiKey": f"{{env:{KEY_NAME}}}"},
            "models": {model: {}},
        }
        for name, package, path, model in providers
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "provider": entries,
    }
    return {"work/opencode.json": json.dumps(config, indent=2)}


def _codex(name: str, *options: str, refused_with: str | None = None) -> Program:
    return Program(
        name=name,
        package="@openai/codex",
        binary="codex",
        arguments=("exec", "--skip-git-repo-check", *options, PROMPT),
        environment=_named,
        files=_codex_config,
        refused_with=refused_with,
    )


def _claude_code(name: str, *options: str) -> Program:
    return Program(
        name=name,
        package="@anthropic-ai/claude-code",
        binary="claude",
        arguments=("-p", *options, PROMPT),
        environment=_claude,
    )


def _opencode(name: str, model: str) -> Program:
    return Program(
        name=name,
        package="opencode-ai",
        binary="opencode",
        arguments=("run", "-m", model, PROMPT),
        environment=_named,
        files=_opencode_config,
    )


PROGRAMS: Final = (
    _claude_code("claude-code"),
    _claude_code("claude-code-sonnet", "--model", "claude-sonnet-5"),
    _codex("codex"),
    _codex("codex-gpt-5.5", "-m", "gpt-5.5", "-c", 'web_search="disabled"'),
    _codex("codex-web-search", "-m", "gpt-5.5", refused_with='web_search = "disabled"'),
    _opencode("opencode", "spendgate/gpt-5.6-sol"),
    _opencode("opencode-openai", "spendgate-openai/gpt-5.6-sol"),
    _opencode("opencode-anthropic", "spendgate-anthropic/claude-sonnet-5"),
    _opencode("opencode-google", "spendgate-google/gemini-3-flash"),
)
