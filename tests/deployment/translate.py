"""Prints templates as SAM hands them to CloudFormation: `python translate.py TEMPLATE CASES`, in SAM's environment.

CASES is a list in JSON of ``[parameters, layer]``: values, and where the built layer lies. One process for all: SAM takes longer to import
than to translate.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class _NoPolicies:
    """The template names no managed policy of AWS's by its short name; were one named, this would say so."""

    def load(self) -> dict[str, Any]:
        return {}


def main(template: str, cases: str) -> None:
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    text = Path(template).read_text(encoding="utf-8")
    json.dump([translated(text, parameters, layer) for parameters, layer in json.loads(cases)], sys.stdout)


def translated(text: str, parameters: dict[str, str], layer: str) -> dict[str, Any]:
    document = yaml_parse(text)
    for one in document["Resources"].values():
        # SAM's command line has replaced these folders by objects in S3 before.
        for name, key in (("CodeUri", "code"), ("ContentUri", layer)):
            if name in one.get("Properties", {}):
                one["Properties"][name] = f"s3://bucket/{key}"
    found: dict[str, Any] = transform(document, parameters, _NoPolicies())
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
