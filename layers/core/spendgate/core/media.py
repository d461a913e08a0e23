"""Images, documents and sound in a request: counted, and bounded by table, never by bytes.

A hundred bytes may hold an image of 8,000 x 8,000 pixels of one colour, and a page of PDF is compressed: the size of
what is sent says nothing about what it costs. Sources and measurements: docs/pricing.md, "Media".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from spendgate.errors import CostBoundUnknown, RefusalFacts

# A file may be anything: text, pages, pictures, sound. Reasoning is what stands for a block of thinking that is not
# shown: its length is nobody's but the provider's.
MediaKind = Literal["image", "document", "audio", "file", "reasoning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """So many items of one kind in a request, after walking all nesting; ``field`` is where the first of them stands.

    ``detail`` is what an image is asked to be looked at with (``low``, ``high``, ``original``, ...), None where the
    request does not say.
    """

    kind: MediaKind
    field: str
    detail: str | None = None
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTokens:
    """The most input tokens that an image costs at some models, by their exact names, aliases and snapshots included.

    ``details`` are (detail, tokens) where a detail is known to cost less. ``in_context`` is False where images are
    billed with more tokens than they take of the context, so that the context is no bound of them.
    """

    models: frozenset[str]
    most: int
    details: tuple[tuple[str, int], ...] = ()
    in_context: bool = True
    source: str
    checked: str

    def of(self, detail: str | None) -> int:
        """Return the most tokens of one image."""
        return dict(self.details).get(detail or "auto", self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTokens:
    """What a request's media can cost: tokens within the context, tokens billed beside it, or the whole context."""

    within: int = 0
    beside: int = 0
    fills_context: bool = False


# Nobody says how large these are: each may fill what the model can read.
FILLS_CONTEXT: Final = frozenset({"document", "audio", "file"})
SOUND: Final = frozenset({"audio", "file"})

_OPENAI: Final = "OpenAI docs, images and vision (mirror of 2026-07 and the page of 2026-11)"
_CLAUDE: Final = "Claude docs, vision (2026-08), with the margin of third-party measurements"
_GEMINI: Final = "google-genai 3.6.1, media resolution; measured 1,065 to 1,101 at high"
_CHECKED: Final = "2026-11-29"

IMAGES: Final = (
    ImageTokens(
        # Billed at 33 times: 2,833 + 5,667 a tile, at most 8 tiles.
        models=frozenset({"gpt-4o-mini", "gpt-4o-mini-2024-07-18"}),
        most=48_169,
        details=(("low", 2_833),),
        in_context=False,
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 85 + 170 a tile.
        models=frozenset(
            {
                "gpt-4o", "gpt-4o-2024-05-13", "gpt-4o-2024-08-06", "gpt-4o-2024-11-20", "chatgpt-4o-latest",
                "gpt-4.1", "gpt-4.1-2025-04-14", "gpt-4.5-preview", "gpt-4.5-preview-2025-02-27",
            }
        ),
        most=1_445,
        details=(("low", 85),),
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 70 + 140 a tile.
        models=frozenset(
            {"gpt-5", "gpt-5-2025-08-07", "gpt-5.1", "gpt-5-1", "gpt-5.1-2025-11-13", "gpt-5-1-2025-11-13"}
        ),
        most=1_190,
        details=(("low", 70),),
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 75 + 150 a tile.
        models=frozenset({"o1", "o1-2024-12-17", "o3", "o3-2025-04-16"}),
        most=1_275,
        details=(("low", 75),),
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 10,000 patches x 1.2 as original; high, which is what auto means there, 2,500 patches.
        models=frozenset({"gpt-5.4", "gpt-5-4", "gpt-5.4-2026-03-05", "gpt-5-4-2026-03-05"}),
        most=12_000,
        details=(("auto", 3_000), ("high", 3_000), ("low", 3_000)),
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        models=frozenset(
            {
                "gpt-5.5", "gpt-5-5", "gpt-5.5-2026-04-23", "gpt-5-5-2026-04-23",
                "gpt-5.5-2026-04-24", "gpt-5-5-2026-04-24",
            }
        ),
        most=12_000,
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 30,000 patches x 1.2; larger images are rejected. 1.2 is measured: 14,364 tokens for 4032 x 3024.
        models=frozenset(
            {
                "gpt-5.6", "gpt-5-6", "gpt-5.6-sol", "gpt-5-6-sol", "gpt-5.6-luna", "gpt-5-6-luna",
                "gpt-5.6-terra", "gpt-5-6-terra",
                "gpt-6-astra", "gpt-6-sol", "gpt-6-luna", "gpt-6.1-sol", "gpt-6.1-terra",
            }
        ),
        most=36_000,
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        # Two versions of the page disagree: the larger number of patches, 6,144, with the larger multiplier, 2.46.
        models=frozenset(
            {
                "gpt-5-mini", "gpt-5-mini-2025-08-07", "gpt-5-nano", "gpt-5-nano-2025-08-07",
                "gpt-5.2", "gpt-5-2", "gpt-5.2-2025-12-11", "gpt-5-2-2025-12-11", "gpt-5.3-codex", "gpt-5-3-codex",
                "gpt-5.4-mini", "gpt-5-4-mini", "gpt-5.4-mini-2026-03-17", "gpt-5-4-mini-2026-03-17",
                "gpt-5.4-nano", "gpt-5-4-nano", "gpt-5.4-nano-2026-03-17", "gpt-5-4-nano-2026-03-17",
                "gpt-4.1-mini", "gpt-4.1-mini-2025-04-14", "gpt-4.1-nano", "gpt-4.1-nano-2025-04-14",
                "o4-mini", "o4-mini-2025-04-16",
            }
        ),
        most=15_115,
        source=_OPENAI,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 4,784 by the page.
        models=frozenset(
            {
                "claude-opus-4-7", "claude-opus-4-7-20260416", "claude-opus-4-8", "claude-opus-5", "claude-opus-5-5",
                "claude-sonnet-5", "claude-sonnet-5-5", "claude-haiku-5-5",
                "claude-fable-5", "claude-fable-5-1", "claude-fable-5-2",
                "claude-mythos-5", "claude-mythos-5-1", "claude-mythos-5-2",
            }
        ),
        most=5_000,
        source=_CLAUDE,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 1,568 by the page.
        models=frozenset(
            {
                "claude-3-haiku", "claude-3-haiku-20240307", "claude-3-sonnet", "claude-3-opus-latest",
                "claude-3-5-haiku-latest", "claude-3-5-sonnet", "claude-3-7-sonnet-latest",
                "claude-haiku-4-5", "claude-haiku-4-5-20251001",
                "claude-sonnet-4", "claude-sonnet-4-0", "claude-sonnet-4-20250514",
                "claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-6",
                "claude-opus-4", "claude-opus-4-0", "claude-opus-4-20250514", "claude-opus-4-1",
                "claude-opus-4-5", "claude-opus-4-5-20251101", "claude-opus-4-6", "claude-opus-4-6-20260205",
            }
        ),
        most=1_700,
        source=_CLAUDE,
        checked=_CHECKED,
    ),
    ImageTokens(
        # 2,240 at the highest resolution, which is not confirmed, and a wrapper.
        models=frozenset(
            {
                "gemini-3-flash-preview", "gemini-3.1-flash-lite", "gemini-3.1-pro-preview",
                "gemini-3.1-pro-preview-customtools", "gemini-3.5-flash", "gemini-3.5-flash-lite", "gemini-3.6-flash", "gemini-3.7-flash", "gemini-3.8-flash",
            }
        ),
        most=2_304,
        source=_GEMINI,
        checked=_CHECKED,
    ),
)  # fmt: skip

# Models that bill an image by its size, 258 tokens a tile of 768 x 768 at most, or by a rule that nobody has published. What
# is in a header proves no size, and a narrow image has any number of tiles: only the context, in which it counts, bounds it.
IMAGES_FILL_CONTEXT: Final = frozenset(
    {
        "gemini-2.5-flash", "gemini-2.5-flash-latest", "gemini-2.5-flash-lite", "gemini-2.5-pro",
        "gemini-4-argon", "gemini-4-hydrogen", "gemini-embedding-2",
    }
)  # fmt: skip

# Bedrock's ids: us.anthropic.claude-sonnet-4-5-20250929-v1:0 (Bedrock user guide, "Supported foundation models", 2026-11).
_AT_BEDROCK: Final = re.compile(
    r"(?:(?:us|us-gov|eu|apac|au|jp|ca|sa|global)\.)?anthropic\.(claude-[a-z0-9-]+?)(?:-v[0-9]+(?::[0-9]+)?)?"
)
_BY_MODEL: Final = {model: family for family in IMAGES for model in family.models}


def media_tokens(media: Sequence[Media], *, names: Sequence[str], stated: int | None, provider: str) -> MediaTokens:
    """Return what the media cost at most at a model, known by any of ``names``, the one that is asked for first.

    ``stated`` is the operator's own number for an image, which is taken before the table's. CostBoundUnknown where
    neither knows the model.
    """
    if not media:
        return MediaTokens()
    family = next((_BY_MODEL[name] for name in map(_bare, names) if name in _BY_MODEL), None)
    in_context = family is not None and family.in_context
    unmeasured = [item for item in media if item.kind in FILLS_CONTEXT]
    if unmeasured and family is not None and not family.in_context:
        raise _pages_beside_the_context(unmeasured[0], names[0])
    tokens = 0
    for item in images(media):
        if stated is not None:
            tokens += stated * item.count
        elif family is not None:
            tokens += family.of(item.detail) * item.count
        elif any(name in IMAGES_FILL_CONTEXT for name in names):
            unmeasured.append(item)
        else:
            raise _unknown_model(item, names[0], provider)
    # Of a model that the table does not know nobody says that the context holds what its images are billed with.
    return MediaTokens(
        within=tokens if in_context else 0, beside=0 if in_context else tokens, fills_context=bool(unmeasured)
    )


def _bare(name: str) -> str:
    """Return Anthropic's own name of a model at Bedrock, which has a region before it and a version after it."""
    found = _AT_BEDROCK.fullmatch(name)
    return name if found is None else found[1]


def filling(media: Sequence[Media]) -> Media:
    """Return the item that a request is refused by where its media fill a context of unknown size."""
    return next((item for item in media if item.kind in FILLS_CONTEXT), None) or images(media)[0]


def images(media: Iterable[Media]) -> tuple[Media, ...]:
    """Return the images alone."""
    return tuple(item for item in media if item.kind == "image")


def _unknown_model(item: Media, model: str, provider: str) -> CostBoundUnknown:
    return CostBoundUnknown(
        f"{item.field} is an image, and nobody has said what an image costs at most with model {model} "
        f"at provider {provider}",
        facts=RefusalFacts(
            field=item.field,
            next_action="send the call without images, or an operator adds image_tokens_max to the price row of "
            f"({provider}, {model})",
        ),
    )


def _pages_beside_the_context(item: Media, model: str) -> CostBoundUnknown:
    return CostBoundUnknown(
        f"{item.field} is a {item.kind}, and model {model} bills the images in it with more tokens than its context "
        "holds, so nothing bounds them",
        facts=RefusalFacts(field=item.field, next_action="send its text, or ask for another model"),
    )
