"""Where a local run keeps things; other commands find it there."""

from pathlib import Path
from typing import Final

STATE_DIR_DEFAULT: Final = ".spendgate"
LOCAL_FILE: Final = "local.json"
# The shipped prices, where the catalogue's function has them.
PRICES: Final = Path(__file__).parents[4] / "functions" / "catalogue" / "prices"
