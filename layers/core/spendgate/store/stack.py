"""A deployed stack as its operators reach it: found by CloudFormation, called with SigV4, its secrets written.

All with the caller's own AWS identity: a profile, the environment, or whatever else botocore finds. Only the command
line imports this, and only where a stack is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from spendgate.errors import SpendgateError

SERVICE: Final = "execute-api"
_CONFIG: Final = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 3, "mode": "standard"})
_EXPIRED: Final = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_NOT_ACCEPTED: Final = {
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
    "AuthFailure",
}
_DENIED: Final = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_STAGE: Final = re.compile(r"https?://[^/]+/(?P<stage>[^/]+)/admin")


class StackFailed(SpendgateError):
    """What was asked of AWS did not work; the sentence says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack with its outputs."""

    name: str
    arn: str
    outputs: Mapping[str, str]

    def output(self, name: str) -> str:
        """Return an output; StackFailed where the stack has none of this name."""
        if name not in self.outputs:
            raise StackFailed(f"stack {self.name} has no output {name}: is it a Spendgate stack, deployed to its end?")
        return self.outputs[name]

    def invoke_arn(self, request: str) -> str:
        """Return what IAM calls a request to the admin API, such as ``GET/admin/budgets``."""
        _, partition, _, region, account, _ = self.arn.split(":", 5)
        found = _STAGE.match(self.outputs.get("AdminUrl", ""))
        stage = found["stage"] if found else "*"
        return f"arn:{partition}:{SERVICE}:{region}:{account}:{self.outputs.get('ApiId', '*')}/{stage}/{request}"


class Aws:
    """AWS as one identity in one region."""

    def __init__(self, *, region: str | None, profile: str | None) -> None:
        """Open a session; StackFailed where there is no such profile, or no region is named anywhere."""
        try:
            self._session = botocore.session.Session(profile=profile)
            found = region or self._session.get_config_variable("region")
        except BotoCoreError as error:
            raise _translated(error, "", "") from error
        if not found:
            raise StackFailed("no AWS region: name one with --region, or set one in the profile or AWS_REGION")
        self.region: str = found

    def stack(self, name: str) -> Stack:
        """Return a stack; StackFailed."""
        try:
            answer = self._client("cloudformation").describe_stacks(StackName=name)
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and _code(error) == "ValidationError":
                raise StackFailed(
                    f"there is no stack {name} in {self.region}: another --region, --profile or name?"
                ) from error
            raise _translated(error, "cloudformation:DescribeStacks", f"the stack {name}") from error
        found = answer["Stacks"][0]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
        return Stack(name=name, arn=found["StackId"], outputs=outputs)

    def signed(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers that sign a request to the API, with the time of now; StackFailed."""
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise NoCredentialsError
            frozen = credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise _translated(error, "", "") from error
        headers = {"content-type": "application/json"} if body else {}
        request = AWSRequest(method=method, url=url, data=body, headers=headers)
        SigV4Auth(frozen, SERVICE, self.region).add_auth(request)
        return dict(request.headers.items())

    def put_secret(self, name: str, value: str) -> bool:
        """Store a secret's value, as a new version where it exists; True where it was made. StackFailed."""
        client = self._client("secretsmanager")
        doing = "secretsmanager:PutSecretValue"
        try:
            try:
                client.put_secret_value(SecretId=name, SecretString=value)
            except ClientError as error:
                if _code(error) != "ResourceNotFoundException":
                    raise
                doing = "secretsmanager:CreateSecret"
                client.create_secret(Name=name, SecretString=value, Description="A provider's secret, for Spendgate.")
                return True
        except (BotoCoreError, ClientError) as error:
            # Never with AWS's own words: a message about a parameter may repeat the parameter.
            raise _translated(error, doing, f"the secret {name}", quoted=False) from None
        return False

    def _client(self, service: str) -> Any:
        return self._session.create_client(service, region_name=self.region, config=_CONFIG)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _translated(error: BotoCoreError | ClientError, action: str, what: str, *, quoted: bool = True) -> StackFailed:
    """Return an error in words that say what to do."""
    match error:
        case ProfileNotFound():
            said = f"{error}: `aws configure list-profiles` shows those that there are"
        case NoCredentialsError() | PartialCredentialsError():
            said = (
                "no AWS credentials: name a profile with --profile (AWS_PROFILE), or sign in, as with `aws sso login`"
            )
        case UnauthorizedSSOTokenError() | TokenRetrievalError() | SSOError():
            said = "the AWS sign-in has expired: sign in again, as with `aws sso login`"
        case EndpointConnectionError() | ConnectTimeoutError() | ReadTimeoutError():
            said = f"AWS does not answer: {error}"
        case ClientError():
            said = _refused(error, action, what, quoted=quoted)
        case _:
            said = f"AWS cannot be asked: {error}" if quoted else f"AWS cannot be asked: {type(error).__name__}"
    return StackFailed(said)


def _refused(error: ClientError, action: str, what: str, *, quoted: bool) -> str:
    code = _code(error)
    if code in _EXPIRED:
        return "the AWS credentials have expired: sign in again, as with `aws sso login`"
    if code in _NOT_ACCEPTED:
        return "AWS does not know these credentials: are they of the right account, and still active?"
    if code in _DENIED:
        return f"this AWS identity may not touch {what}: allow it {action}"
    if code.startswith("Throttl"):
        return "AWS is throttling this account: nothing was done, try again in a moment"
    message = f": {error.response.get('Error', {}).get('Message', '')}" if quoted else ""
    return f"AWS refuses {what} with {code}{message}"
