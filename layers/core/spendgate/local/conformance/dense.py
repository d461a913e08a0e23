"""Texts that are more tokens than they look, and media that are more than their bytes."""

from typing import Final

SYMBOLS: Final = "{}[]();:$#@!%^&*~|" * 112
LONG: Final = "seven " * 1334
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
