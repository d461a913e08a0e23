"""What a provider says that an answer cost, where its kind says so at all, as whole picodollars.

Read exactly, and rounded up once. What cannot be read is no charge: the answer is then priced by its counts.
"""

from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Final

from spendgate.core.money import PICODOLLARS_PER_USD
from spendgate.core.usage import usable_count
from spendgate.dialects.dialect import Request

# 10**10 ticks are one USD (docs.x.ai/developers/cost-tracking).
PICODOLLARS_PER_TICK: Final = PICODOLLARS_PER_USD // 10**10
# No answer costs as much; above it, a number is a mistake.
_USD_MAX: Final = Decimal(10**9)
# Enough digits for any number up to that, whatever stands behind its point that is not rounded up by it.
_EXACT: Final = Context(prec=64, rounding=ROUND_CEILING)


class Charges:
    """The charge of one answer, merged over its frames: the greatest that was said."""

    def __init__(self, request: Request | None) -> None:
        kind = None if request is None else request.kind
        self._convention = "none" if kind is None else kind.charge
        self.charge: int | None = None

    def take(self, usage: Any) -> None:
        """Read the charge in one usage object."""
        if not isinstance(usage, dict):
            return
        match self._convention:
            case "ticks":
                said = ticks_charge(usage)
            case "cost":
                said = cost_charge(usage)
            case _:
                return
        if said is not None:
            self.charge = max(said, self.charge or 0)


def ticks_charge(usage: dict[str, Any]) -> int | None:
    """Return xAI's charge: what is billed, after discounts, with tools."""
    ticks = usable_count(usage.get("cost_in_usd_ticks"))
    return None if ticks is None else ticks * PICODOLLARS_PER_TICK


def cost_charge(usage: dict[str, Any]) -> int | None:
    """Return OpenRouter's charge: with a key of one's own (BYOK), ``cost`` is its fee and the provider's comes on top."""
    fee = picodollars(usage.get("cost"))
    own_key = usage.get("is_byok")
    if fee is None or own_key is False:
        return fee
    details = usage.get("cost_details")
    upstream = picodollars(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
    if upstream is None:
        # Without the provider's share, the fee alone is no charge.
        return None if own_key is True else fee
    return fee + upstream


def picodollars(value: Any) -> int | None:
    """Return an amount of USD in picodollars, rounded up; None for what is no such amount."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    amount = Decimal(value)
    if not amount.is_finite() or not 0 <= amount <= _USD_MAX:
        return None
    return int(amount.scaleb(12, _EXACT).to_integral_value(ROUND_CEILING))
