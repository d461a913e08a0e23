"""Keys: long, shown once, known afterwards by their hash alone."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.key import KEY_BYTES, KEY_PREFIX, allows, hash_secret, is_well_formed, new_secret
from tests.builders import a_key


@given(st.binary(min_size=KEY_BYTES, max_size=96))
def test_a_new_key_is_well_formed_and_holds_all_its_randomness(randomness: bytes) -> None:
    secret = new_secret(randomness)

    assert is_well_formed(secret)
    assert len(secret) - len(KEY_PREFIX) >= len(randomness) * 8 / 6


@given(st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES), st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES))
def test_two_keys_are_one_only_if_their_randomness_is(one: bytes, other: bytes) -> None:
    assert (new_secret(one) == new_secret(other)) == (one == other)


def test_a_key_has_160_bits_or_more() -> None:
    assert KEY_BYTES * 8 >= 160
    with pytest.raises(ValueError, match="random bytes"):
        new_secret(bytes(KEY_BYTES - 1))


@pytest.mark.parametrize(
    "text",
    ["", "sg-", "sg-key", "sk-0123456789abcdef", "SG-0123456789abcdef", "sg-0123456789abcdef\n", "sg-0123456789 abcdef",
     " sg-0123456789abcdef", "sg-0123456789abcdé", "sg-" + "x" * 129],
)  # fmt: skip
def test_what_cannot_be_a_key_needs_no_look_at_the_table(text: str) -> None:
    assert not is_well_formed(text)


def test_a_key_is_known_by_its_sha_256() -> None:
    assert hash_secret("sg-0123456789abcdef") == hashlib.sha256(b"sg-0123456789abcdef").hexdigest()


def test_a_key_without_models_may_ask_for_every_route_and_one_with_models_for_these() -> None:
    assert allows(a_key(), "anything")
    assert allows(a_key(models=("a", "b")), "b")
    assert not allows(a_key(models=("a", "b")), "a-latest")
