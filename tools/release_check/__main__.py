"""`make release-check`: with AWS credentials in the environment, deploy a throwaway stack, look at it as its users do, and remove everything.

To be run once against a real account before a version is released: nothing else here has seen AWS itself. It costs cents. With ``--stack`` it
looks at a stack that is there, and changes nothing; with a key in ``SPENDGATE_KEY`` and ``--model`` it then also makes one streamed call to
a provider, which costs a fraction of a cent.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import boto3

from tools.release_check.checks import Check, CheckFailed, Subject, run
from tools.release_check.throwaway import ROOT, Sam, Throwaway, deployed, new_name, outputs_of


def looked_at(subject: Subject, *, is_emulated: bool) -> Sequence[Check]:
    """Return what is looked at of every stack."""
    checks = [subject.health, subject.paths, subject.identity, subject.admin_unsigned, subject.admin_signed]
    checks += [subject.catalogue, subject.alarms]
    if not is_emulated:
        checks.append(subject.tables)
    if subject.key and subject.model:
        checks.append(subject.streamed)
    return checks


def main() -> int:
    """Return 1 where a check failed, or something could not be removed."""
    given = _arguments()
    session = boto3.Session(region_name=given.region)
    if session.region_name is None:
        sys.exit("release-check: name a region (--region, AWS_DEFAULT_REGION, or your AWS profile)")
    if given.stack:
        failed = run(looked_at(_subject(session, given.stack, given), is_emulated=given.emulated), _say)
        return 1 if failed else 0
    sam, name = Sam(given.sam.resolve(), given.built.resolve()), new_name()
    parameters = dict(one.split("=", 1) for one in given.parameter)
    _say(f"        stack {name} in {session.region_name}, removed at the end")
    failed = 1
    try:
        with deployed(session, name, sam, parameters, _say):
            subject = _subject(session, name, given)
            throwaway = Throwaway(subject, name)
            failed = run(
                (*looked_at(subject, is_emulated=given.emulated), *throwaway.checks(), subject.admin_signed), _say
            )
    except CheckFailed as error:
        _say(f"FAILED  {error}")
        return 1
    return 1 if failed else 0


def _subject(session: boto3.Session, stack: str, given: argparse.Namespace) -> Subject:
    outputs = outputs_of(session, stack)
    endpoint = (given.endpoint or outputs["Endpoint"]).replace("{ApiId}", outputs["ApiId"]).rstrip("/")
    return Subject(session, stack, outputs, endpoint, os.environ.get("SPENDGATE_KEY"), given.model)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="release_check",
        description="Deploy a throwaway stack, check it, and remove everything; or look at a stack that is there.",
    )
    parser.add_argument("--stack", help="look at this stack, and change nothing")
    parser.add_argument("--region", help="else the one of your AWS configuration")
    parser.add_argument(
        "--endpoint", help="another URL than the stack's output Endpoint; {ApiId} stands for that output"
    )
    parser.add_argument(
        "--model", help="a route of the dialect openai, for a streamed call by the key in SPENDGATE_KEY"
    )
    parser.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE", help="of the throwaway stack")
    parser.add_argument("--built", type=Path, default=ROOT / ".aws-sam" / "build", help="what sam build has made")
    parser.add_argument("--sam", type=Path, default=ROOT / ".venv-sam" / "bin" / "sam", help="SAM's program")
    parser.add_argument("--emulated", action="store_true", help="leave out what emulators of AWS do not do")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
