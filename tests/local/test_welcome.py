"""The first text of a local run fits a terminal, can be copied, and is right for how it was started."""

from pathlib import Path
from typing import Any, cast

import pytest

from spendgate.local.place import Local
from spendgate.local.welcome import command_of, farewell, welcome


def _local(**changes: Any) -> Local:
    known = {
        "url": "http://127.0.0.1:8787",
        "admin_url": "http://127.0.0.1:8787/admin",
        "admin_token": "t" * 32,
        "keys": {"demo": "sg-local-demo-key-0000"},
        "state_dir": Path(".spendgate"),
        "wired": cast("Any", None),
        "demo_url": "http://127.0.0.1:40000",
    }
    return Local(**(known | changes))


def test_it_fits_eighty_columns_and_has_the_key_where_an_sdk_wants_it() -> None:
    text = welcome(_local(), None)

    assert max(len(line) for line in text.splitlines()) <= 80
    assert 'OpenAI(base_url="http://127.0.0.1:8787/v1"' in text
    assert 'Anthropic(base_url="http://127.0.0.1:8787"' in text
    assert text.count('api_key="sg-local-demo-key-0000"') == 2
    assert "Bearer sg-local-demo-key-0000" in text


def test_with_a_configuration_it_shows_the_keys_that_were_just_made_and_every_warning() -> None:
    local = _local(keys={"triage": "sg-" + "x" * 32}, demo_url=None, warnings=("route small has no price row",))

    text = welcome(local, Path("spendgate.yaml"))

    assert "key triage      sg-" + "x" * 32 in text
    assert "warning: route small has no price row" in text
    assert "demo" not in text


def test_with_a_configuration_whose_keys_were_made_before_it_says_how_to_make_another() -> None:
    assert "spendgate keys create NAME --budget PATH" in welcome(_local(keys={}, demo_url=None), Path("spendgate.yaml"))


@pytest.mark.parametrize(
    ("program", "command"),
    [(".venv/bin/spendgate", ".venv/bin/spendgate"), ("/x/cli/main.py", "spendgate"), ("", "spendgate")],
)
def test_a_command_is_named_as_it_was_called(program: str, command: str) -> None:
    assert command_of(program) == command


def test_the_end_says_what_is_kept() -> None:
    assert farewell(persist=True, state_dir=Path("s")).endswith("are kept in s.")
    assert farewell(persist=False, state_dir=Path("s")).endswith("nothing is kept.")
