"""The catalogue's files: each is taken whole or not at all, and what is wrong is told with the file and its line."""

from pathlib import Path

import pytest

from spendgate.catalogue_files import all_rows, catalogue_in, parse_file, rows_of
from spendgate.errors import ConfigurationInvalid

GOOD = """\
provider: acme
source: https://example.com/pricing
checked: 2026-11-29
prices:
  - model: big
    from: 2026-01-01
    input: "2.50"
    output: "10"
    aliases: [big-1]
  - {model: small, input: 1, output: 2, source: "https://example.com/small", checked: 2026-11-30}
"""


def test_the_head_of_a_file_holds_for_every_row_without_its_own() -> None:
    big, small = parse_file("acme.yaml", GOOD)

    assert (big.provider, big.source, big.checked) == ("acme", "https://example.com/pricing", "2026-11-29")
    assert (small.provider, small.source, small.checked) == ("acme", "https://example.com/small", "2026-11-30")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('input: "2.50"', "input: -1", "line 7: acme.yaml: prices[0].input: must be a rate"),
        ("output: 2,", "", "line 10: acme.yaml: prices[1].output: is missing"),
        ("aliases: [big-1]", "aliases: [small]", "acme.yaml: prices[0].aliases[0]: is already the name of a model"),
        (
            "model: small,",
            "model: big, from: 2026-01-01,",
            "line 10: acme.yaml: prices[1]: has provider, model and instant",
        ),
        ("model: small,", "provider: other, model: small,", "acme.yaml: prices[1].provider: is not in providers"),
        ("checked: 2026-11-29", "checked: yesterday", "acme.yaml: prices[0].checked: must be a date"),
        ("provider: acme\n", "", "acme.yaml: provider: must be the provider's name"),
        ("provider: acme", "provder: acme", "line 1: acme.yaml: provder: is not known here"),
        ("provider: acme", "provider: [", "acme.yaml: not YAML"),
        (GOOD[GOOD.index("prices:") :], "prices: []\n", "acme.yaml: prices: must be a list of at least one price row"),
        (GOOD[GOOD.index("prices:") :], "prices: [5]\n", "acme.yaml: prices[0]: must be a mapping"),
        (GOOD, "[]", "acme.yaml: must be a mapping"),
        (GOOD, "", "acme.yaml: the file is empty"),
    ],
)
def test_one_bad_row_refuses_the_whole_file_and_names_its_line(old: str, new: str, told: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigurationInvalid) as raised:
        parse_file("acme.yaml", GOOD.replace(old, new, 1))
    assert told in str(raised.value)


def test_every_bad_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace('"10"', "x"), encoding="utf-8")
    (tmp_path / "b.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigurationInvalid) as raised:
        all_rows(tmp_path)
    assert [problem.place.partition(":")[0] for problem in raised.value.problems] == ["a.yaml", "c.yaml"]


def test_a_folder_hands_out_a_file_by_its_name_and_nothing_for_another(tmp_path: Path) -> None:
    (tmp_path / "acme.yaml").write_text(GOOD, encoding="utf-8")
    catalogue = catalogue_in(tmp_path)

    assert catalogue("acme") == rows_of(tmp_path / "acme.yaml") == all_rows(tmp_path)
    assert catalogue("acme") is catalogue("acme")
    assert catalogue("../acme") is None
    assert catalogue_in(tmp_path / "nowhere")("acme") is None
