"""What operators type, checked: each mistake names its field and what is allowed."""

from datetime import UTC, datetime

from spendgate.core.event import REASON_LENGTH_MAX
from spendgate.errors import RefusalFacts, RequestInvalid


def sentence(text: str, field: str) -> str:
    """Return a reason or an evidence: one line that is not blank."""
    stripped = text.strip()
    if not stripped or len(stripped) > REASON_LENGTH_MAX or not stripped.isprintable():
        raise invalid(field, f"one line of 1 to {REASON_LENGTH_MAX} characters, not blank")
    return stripped


def instant_of(text: str, field: str, allowed: str) -> datetime:
    """Return an instant, in UTC where the text does not say; a date alone is its start."""
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise invalid(field, allowed) from error


def invalid(field: str, allowed: str) -> RequestInvalid:
    """Return the error of a field."""
    return RequestInvalid(f"{field}: {allowed}", facts=RefusalFacts(field=field))
