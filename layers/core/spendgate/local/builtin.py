"""The configuration of a local run that was given none: the demo provider in three dialects, and small budgets."""

from typing import Final

# Known to everybody, and of use to nobody: it opens a provider on loopback that costs nothing.
DEMO_KEY: Final = "sg-local-demo-key-0000"

_FILE: Final = """\
version: 1
providers:
  demo-openai:
    dialect: openai
    base_url: {url}/v1
    # The demo provider documents what it adds to a request; an unknown host gets a larger allowance.
    framing: {{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}}
  demo-anthropic:
    dialect: anthropic
    base_url: {url}
    framing: {{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}}
  demo-gemini:
    dialect: gemini
    base_url: {url}
    framing: {{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}}
prices:
  - {{provider: demo-openai, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: demo-anthropic, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: demo-gemini, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
routes:
  demo: [{{provider: demo-openai, model: demo}}]
  demo-claude: [{{provider: demo-anthropic, model: demo}}]
  demo-gemini: [{{provider: demo-gemini, model: demo}}]
budgets:
  acme:
    limits: {{usd: {{month: 50, day: 5}}}}
  acme/search:
    limits: {{usd: {{day: 1}}}}
  acme/search/triage:
    limits: {{usd: {{request: "0.05", hour: "0.25"}}, requests: {{minute: 120}}}}
    default_output_tokens: 1024
    runs: {{limits: {{usd: {{life: "0.05"}}, requests: {{life: 50}}}}, expire_after: 24h, stop_on_unknown: true}}
keys:
  demo: {{budget: acme/search/triage, secret: {key}}}
"""


def configuration_text(provider_url: str) -> str:
    """Return the built-in configuration for a demo provider at ``provider_url``."""
    return _FILE.format(url=provider_url, key=DEMO_KEY)
