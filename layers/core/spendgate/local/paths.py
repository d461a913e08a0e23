"""Where a local run keeps things; other commands find it there."""

from typing import Final

STATE_DIR_DEFAULT: Final = ".spendgate"
LOCAL_FILE: Final = "local.json"
