"""Builds functions/catalogue/prices and docs/catalogue-report.md: ``make catalogue``.

The order of what is written does not depend on the machine, so that a build without a change changes nothing.
"""

import sys
from pathlib import Path
from typing import Final

from tools.catalogue import genai
from tools.catalogue.facts import facts
from tools.catalogue.merge import grouped, merged, with_announced
from tools.catalogue.offer import Report
from tools.catalogue.render import catalogue_text, report_text
from tools.catalogue.rows import Row, rows

ROOT: Final = Path(__file__).parents[2]
PRICES: Final = Path("functions/catalogue/prices")
# Makers as OpenRouter's names begin, and the provider whose own prices they are.
RESOLD: Final = {
    "anthropic": "anthropic", "deepseek": "deepseek", "google": "gemini", "mistralai": "mistral", "openai": "openai",
    "x-ai": "xai",
}  # fmt: skip
REPORT: Final = Path("docs/catalogue-report.md")


def build() -> tuple[dict[Path, str], Report]:
    """Return every file that the build writes, by its place in the repository, and what there is to tell."""
    report, files = Report(), {}
    catalogue: dict[str, list[Row]] = {}
    listed = {provider: genai.listings(provider, report) for provider in sorted(genai.IDS)}
    makers = {maker: listed[provider] for maker, provider in RESOLD.items()}
    for provider, listings in listed.items():
        priced = merged(provider, listings, facts(provider, report), report)
        if provider == "openrouter":
            priced = with_announced(provider, priced, makers, report)
        catalogue[provider] = rows(provider, grouped(listings, priced), report)
        files[PRICES / f"{provider}.yaml"] = catalogue_text(provider, catalogue[provider], genai.pricing_url(provider))
    files[REPORT] = report_text(catalogue, report)
    return files, report


def main() -> None:
    """Write the files; print every difference between the sources, and how much of what was left out."""
    files, report = build()
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    for heading in sorted(report.lines):
        lines = sorted(set(report.lines[heading]))
        sys.stdout.write(f"{heading}: {len(lines)}\n")
        if "differ" in heading:
            sys.stdout.writelines(f"  {line}\n" for line in lines)


if __name__ == "__main__":
    main()
