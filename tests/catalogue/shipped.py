"""Where the shipped prices are."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRICES: Final = ROOT / "functions" / "catalogue" / "prices"
PROVIDERS: Final = (
    "anthropic", "azure", "bedrock", "deepseek", "fireworks", "gemini",
    "groq", "mistral", "openai", "openrouter", "together", "xai",
)  # fmt: skip
