"""What a fault is that is put into the code: a piece of a module's text, and what takes its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault, in words; the module and its text; and what takes its place."""

    name: str
    told: str
    module: str
    old: str
    new: str
