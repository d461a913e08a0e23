"""docs/cli.md is what the commands say."""

from pathlib import Path

from spendgate.cli import exit_codes
from spendgate.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_what_the_commands_say_now() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m spendgate.cli.reference > docs/cli.md"


def test_every_exit_code_is_on_the_page() -> None:
    codes = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}

    assert codes == set(exit_codes.MEANINGS)


def test_every_command_shows_an_example_and_fits_80_columns() -> None:
    sections = reference().split("\n## spendgate ")[1:]

    for section in sections:
        title = section.partition("\n")[0]
        assert "Example" in section or title in {"keys", "reservations", "reconcile"}, title
        assert max(len(line) for line in section.splitlines()) <= 80, title
