"""What Amazon Q Developer in chat applications shows of a topic's messages; what has another form it drops without a word.

The form is that of docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html.
"""

from __future__ import annotations

import json
from typing import Any

TITLE_LENGTH_MAX = 250
DESCRIPTION_LENGTH_MAX = 8000
METADATA = {"threadId": str, "summary": str, "eventType": str, "relatedResources": list, "additionalContext": dict}


def content_of(text: str) -> dict[str, Any]:
    """Return the content of a custom notification, which is asserted to be one."""
    document: dict[str, Any] = json.loads(text)
    assert (document["version"], document["source"]) == ("1.0", "custom")
    assert set(document) <= {"version", "source", "id", "content", "metadata"}
    content: dict[str, Any] = document["content"]
    assert set(content) <= {"textType", "title", "description", "nextSteps", "keywords"}
    assert content["textType"] == "client-markdown"
    assert 0 < len(content["title"]) <= TITLE_LENGTH_MAX
    assert 0 < len(content["description"]) <= DESCRIPTION_LENGTH_MAX
    assert all(isinstance(one, str) for one in (*content["nextSteps"], *content["keywords"]))
    for name, value in document["metadata"].items():
        assert isinstance(value, METADATA[name]), name
    return content
