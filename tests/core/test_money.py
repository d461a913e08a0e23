"""Money: exact on every wire, whole picodollars inside."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.money import MONEY_MAX, PICODOLLARS_PER_USD, rate_per_million, saturated, usd, usd_text

amounts = st.integers(0, MONEY_MAX - 1)


@given(amounts)
def test_an_amount_survives_its_text(amount: int) -> None:
    assert usd(usd_text(amount)) == amount


@given(st.integers(-MONEY_MAX, MONEY_MAX))
def test_an_amount_s_text_is_its_exact_value_in_usd(amount: int) -> None:
    text = usd_text(amount)

    assert Fraction(text) * PICODOLLARS_PER_USD == amount
    assert "." not in text or not text.endswith(("0", "."))


@given(st.integers(0, 10**12))
def test_a_rate_a_million_tokens_is_a_millionth_of_it_a_token(rate: int) -> None:
    """So pricing never divides."""
    assert rate_per_million(str(Decimal(rate).scaleb(-6).quantize(Decimal("0.000001")))) == rate


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0"),
        (1, "0.000000000001"),
        (282_500_000, "0.0002825"),
        (PICODOLLARS_PER_USD, "1"),
        (25 * PICODOLLARS_PER_USD, "25"),
        (-PICODOLLARS_PER_USD // 2, "-0.5"),
        (10 * PICODOLLARS_PER_USD, "10"),
    ],
)
def test_an_amount_is_written_without_what_says_nothing(amount: int, text: str) -> None:
    assert usd_text(amount) == text


@pytest.mark.parametrize(
    ("text", "amount"), [("0", 0), ("5", 5 * 10**12), ("0.50", 5 * 10**11), ("0.0000000000010", 1), ("9" * 24, None)]
)
def test_an_amount_is_read_exactly(text: str, amount: int | None) -> None:
    assert usd(text) == (int(text) * 10**12 if amount is None else amount)


@pytest.mark.parametrize(
    "text",
    ["", " ", "-1", "+1", "1e3", "1E3", ".5", "5.", "1,5", "1_000", "NaN", "inf", "0x10", "$5", "5 ", "5\n", "٣", "1.2.3",
     "0.0000000000001", "9" * 25],
)  # fmt: skip
def test_what_is_no_exact_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="decimal"):
        usd(text)


def test_a_rate_below_a_picodollar_a_token_is_refused() -> None:
    assert rate_per_million("0.000001") == 1
    with pytest.raises(ValueError, match="6 decimal places"):
        rate_per_million("0.0000001")


def test_sums_saturate() -> None:
    assert saturated(MONEY_MAX + 1) == MONEY_MAX
    assert saturated(MONEY_MAX - 1) == MONEY_MAX - 1
