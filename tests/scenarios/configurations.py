"""Configurations for the scenarios: one provider in both dialects, budgets by name, a key for each."""

from collections.abc import Mapping

from spendgate.core.money import usd_text

_HEAD = """\
version: 1
providers:
  demo-openai:
    dialect: openai
    base_url: {url}/v1
    framing: {{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}}
  demo-anthropic:
    dialect: anthropic
    base_url: {url}
    framing: {{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}}
prices:
  - {{provider: demo-openai, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: demo-anthropic, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
routes:
  demo: [{{provider: demo-openai, model: demo}}]
  demo-claude: [{{provider: demo-anthropic, model: demo}}]
"""


def configuration(provider_url: str, limits: Mapping[str, int]) -> str:
    """Return a file in which each budget has a lifetime limit in picodollars, and a key of its own name."""
    budgets = [f'  {path}: {{limits: {{usd: {{life: "{usd_text(limit)}"}}}}}}' for path, limit in limits.items()]
    keys = [f"  {name_of(path)}: {{budget: {path}, secret: {key_of(path)}}}" for path in limits]
    return "\n".join([_HEAD.format(url=provider_url) + "budgets:", *budgets, "keys:", *keys, ""])


def name_of(path: str) -> str:
    """Return the name of a budget's key."""
    return path.replace("/", "-")


def key_of(path: str) -> str:
    """Return the secret of a budget's key: invented here, and good for nothing."""
    return f"sg-scenario-key-{name_of(path):-<8}"
