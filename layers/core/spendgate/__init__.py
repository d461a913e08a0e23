"""Spend control for agents: a call is refused before it leaves, or its money is reserved."""

__version__ = "0.1.0"
