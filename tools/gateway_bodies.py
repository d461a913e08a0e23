"""The bodies that agents send, as far as the gateway's document names them: of each protocol the fields that most requests have."""

from __future__ import annotations

from typing import Any, Final

from spendgate.core.run import DELEGATE_DEPTH_MAX
from spendgate.core.usage import COUNT_MAX
from spendgate.core.window import MEASURES, WINDOWS

Json = dict[str, Any]

TEXT: Final[Json] = {"type": "string"}
RUN: Final[Json] = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$"}
IDEMPOTENCY_KEY: Final[Json] = {"type": "string", "pattern": "^[!-~]{1,256}$"}
# What JSON's readers hold exactly.
_WHOLE: Final[Json] = {"type": "integer", "minimum": 1, "maximum": COUNT_MAX}
_FEW: Final[Json] = {"type": "integer", "minimum": 1, "maximum": 128}
_OBJECT: Final[Json] = {"type": "object"}
_NAME: Final[Json] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
_SPAN: Final[Json] = {"type": "string", "pattern": "^[1-9][0-9]{0,5}[smhd]$"}


def _object(required: str = "", /, **properties: Json) -> Json:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(of: Json, least: int = 1) -> Json:
    return {"type": "array", "items": of, "minItems": least}


def _one_of(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


_PART: Final = _object("type text", type=_one_of("text"), text=TEXT)
_CONTENT: Final[Json] = {"anyOf": [TEXT, _list(_PART)]}
_PARTS: Final = _object("role parts", role=_one_of("user", "model"), parts=_list(_object("text", text=TEXT)))
_CALLABLE: Final = _object("name", name=_NAME, parameters=_OBJECT)
# Gemini's own words for what JSON schemas say.
_DECLARED: Final = _object("name", name=_NAME, parameters=_object("type", type=_one_of("OBJECT")))
_COUNTED_UP: Final[Json] = {"type": "integer", "minimum": 0, "maximum": COUNT_MAX}
_USD: Final[Json] = {"anyOf": [_COUNTED_UP, {"type": "string", "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,12})?$"}]}
_LIMITS: Final = _object(
    **{one: _object(**dict.fromkeys(WINDOWS, _USD if one == "usd" else _COUNTED_UP)) for one in MEASURES}
)
_TURN: Final = _object("role content", role=_one_of("system", "user", "assistant"), content=_CONTENT)
_MESSAGE: Final = _object("role content", role=_one_of("user", "assistant"), content=_CONTENT)
_BLOCKS: Final = _object("role content", role=_one_of("user", "assistant"), content=_list(_object("text", text=TEXT)))
_COUNTED: Final = _object(
    "model messages",
    model=TEXT,
    messages=_list(_MESSAGE),
    system=_CONTENT,
    tools=_list(_object("name input_schema", name=_NAME, input_schema=_OBJECT)),
)
BODIES: Final[Json] = {
    "ChatCompletion": _object(
        "model messages",
        model=TEXT,
        messages=_list(_TURN),
        max_completion_tokens=_WHOLE,
        n=_FEW,
        stream={"type": "boolean"},
        stop={"anyOf": [TEXT, _list(TEXT)]},
        temperature={"type": "number", "minimum": 0, "maximum": 2},
        tools=_list(_object("type function", type=_one_of("function"), function=_CALLABLE)),
        response_format=_object("type", type=_one_of("text", "json_object")),
    ),
    "Completion": _object(
        "model prompt", model=TEXT, prompt=TEXT, max_tokens=_WHOLE, n=_FEW, stream={"type": "boolean"}
    ),
    "Embeddings": _object("model input", model=TEXT, input={"anyOf": [TEXT, _list(TEXT)]}, dimensions=_WHOLE),
    "Response": _object(
        "model input",
        model=TEXT,
        input={"anyOf": [TEXT, _list(_object("role content", role=_one_of("user", "assistant"), content=TEXT))]},
        instructions=TEXT,
        max_output_tokens={"type": "integer", "minimum": 16, "maximum": COUNT_MAX},
        store={"type": "boolean"},
        stream={"type": "boolean"},
        tools=_list(_object("type name", type=_one_of("function"), name=_NAME, parameters=_OBJECT)),
    ),
    "Message": _object(
        "model messages max_tokens",
        max_tokens=_WHOLE,
        stream={"type": "boolean"},
        stop_sequences=_list(TEXT),
        **_COUNTED["properties"],
    ),
    "MessageTokens": _COUNTED,
    "Converse": _object(
        "messages",
        messages=_list(_BLOCKS),
        system=_list(_object("text", text=TEXT)),
        inferenceConfig=_object(maxTokens=_WHOLE, stopSequences=_list(TEXT)),
    ),
    "GenerateContent": _object(
        "contents",
        contents=_list(_PARTS),
        systemInstruction=_object("parts", parts=_list(_object("text", text=TEXT))),
        generationConfig=_object(maxOutputTokens=_WHOLE, candidateCount=_WHOLE, stopSequences=_list(TEXT)),
        tools=_list(_object("functionDeclarations", functionDeclarations=_list(_DECLARED))),
    ),
    "ContentTokens": _object("contents", contents=_list(_PARTS)),
    "EmbedContent": _object("content", content=_object("parts", parts=_list(_object("text", text=TEXT)))),
    "BatchEmbedContents": _object(
        "requests",
        requests=_list(
            _object(
                "content",
                model={"type": "string", "description": "That of the path, or left out."},
                content=_object("parts", parts=_list(_object("text", text=TEXT))),
            )
        ),
    ),
    "Run": _object(
        run=RUN,
        limits=_LIMITS,
        expires_after=_SPAN,
        elapsed_max=_SPAN,
        active_max=_SPAN,
        models=_list(TEXT, 0),
        delegate={"type": "integer", "minimum": 0, "maximum": DELEGATE_DEPTH_MAX},
    ),
}
