"""Prints a template as SAM hands it to CloudFormation: `python translate.py TEMPLATE PARAMETERS LAYER`, in SAM's environment."""

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


def main(template: str, parameters: str, layer: str) -> None:
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    document = yaml_parse(Path(template).read_text(encoding="utf-8"))
    for one in document["Resources"].values():
        # SAM's command line has replaced these folders by objects in S3 before.
        for name, key in (("CodeUri", "code"), ("ContentUri", layer)):
            if name in one.get("Properties", {}):
                one["Properties"][name] = f"s3://bucket/{key}"
    json.dump(transform(document, json.loads(parameters), _NoPolicies()), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
