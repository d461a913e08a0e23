"""The stack as a platform engineer makes it: `sam build`, `sam deploy`, on an emulator of AWS that this starts and ends.

Everything is on 127.0.0.1 and in one folder; the emulator evaluates IAM (AUTH=true), where the access key ``test`` is the account's root.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

ROOT: Final = Path(__file__).parents[2]
EMULATOR: Final = ROOT / ".venv-deploy" / "bin"
SAM: Final = ROOT / ".venv-sam" / "bin" / "sam"
REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
STACK: Final = "proof"
READY_SECONDS_MAX: Final = 60
COMMAND_SECONDS_MAX: Final = 300
# What a function takes of the emulator's environment is the emulator's whole environment, so little is given.
_PASSED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
_PASSED_TO_PIP: Final = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_", "HTTP", "http", "NO_PROXY", "no_proxy")
ROOT_KEYS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who signs a request."""

    access_key: str
    secret_key: str
    token: str | None = None

    def client(self, service: str, url: str) -> Any:
        """Return boto3's client of a service, as this caller."""
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=url,
            region_name=REGION,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            aws_session_token=self.token,
            config=Config(retries={"total_max_attempts": 1}),
        )


ROOT_CALLER: Final = Caller("test", "test")


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator."""

    url: str
    folder: Path
    # Its process group: itself, and the functions' workers.
    group: int

    def client(self, service: str) -> Any:
        """Return boto3's client of a service, as the account's root."""
        return ROOT_CALLER.client(service, self.url)

    def publish_adapter(self) -> str:
        """Publish the stand-in of the Lambda Web Adapter as a layer, and return its ARN."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            member = zipfile.ZipInfo("bootstrap")
            member.external_attr = 0o755 << 16
            archive.writestr(member, (Path(__file__).parent / "adapter" / "bootstrap").read_text(encoding="utf-8"))
        made = self.client("lambda").publish_layer_version(LayerName="adapter", Content={"ZipFile": packed.getvalue()})
        return str(made["LayerVersionArn"])

    def mail(self) -> list[dict[str, str]]:
        """Return every email that SNS would have sent: to whom, its subject and its text."""
        mailbox = self.folder / "mail.jsonl"
        lines = mailbox.read_text(encoding="utf-8").splitlines() if mailbox.exists() else []
        return [json.loads(line) for line in lines]

    def operator(self, name: str, *statements: Mapping[str, Any]) -> Caller:
        """Make an IAM user with these rights."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        if statements:
            document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
            iam.put_user_policy(UserName=name, PolicyName="rights", PolicyDocument=document)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return Caller(key["AccessKeyId"], key["SecretAccessKey"])


@dataclass(frozen=True, slots=True)
class Stack:
    """A deployed stack: its outputs, and its physical names by their names in the template."""

    emulator: Emulator
    outputs: Mapping[str, str]
    resources: Mapping[str, str]

    @property
    def url(self) -> str:
        """What the output Endpoint is on AWS."""
        return f"{self.emulator.url}/_aws/execute-api/{self.outputs['ApiId']}/v"

    def dynamodb(self) -> DynamoDBClient:
        """Return a client of the tables, as the account's root."""
        client: DynamoDBClient = self.emulator.client("dynamodb")
        return client

    def call(self, method: str, path: str, document: Any = None, *, caller: Caller | None) -> httpx.Response:
        """Ask the API, signed by SigV4 unless nobody asks."""
        content = b"" if document is None else json.dumps(document).encode()
        headers = {"content-type": "application/json"}
        if caller is not None:
            request = AWSRequest(method=method, url=self.url + path, data=content, headers=headers)
            signed = Credentials(caller.access_key, caller.secret_key, caller.token)
            SigV4Auth(signed, "execute-api", REGION).add_auth(request)
            headers = dict(request.headers.items())
        with httpx.Client(trust_env=False, timeout=60) as client:
            return client.request(method, self.url + path, content=content, headers=headers)

    def invoke(self, function: str, event: Mapping[str, Any]) -> tuple[str | None, Any]:
        """Invoke a function by its alias, and return its error, if it raised one, and what it answered."""
        answer = self.emulator.client("lambda").invoke(
            FunctionName=f"{self.resources[function]}:live", Payload=json.dumps(event).encode()
        )
        return answer.get("FunctionError"), json.loads(answer["Payload"].read())

    def role(self, function: str) -> Caller:
        """Take on a function's own role."""
        name = self.resources[f"{function}Role"]
        taken = self.emulator.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{name}", RoleSessionName="test"
        )["Credentials"]
        return Caller(taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"])


@contextmanager
def emulator(folder: Path) -> Iterator[Emulator]:
    """Run the emulator in a folder until the block ends; its workers are in its process group and end with it."""
    port = free_port()
    (folder / "tmp").mkdir(parents=True)
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ} | ROOT_KEYS | {
        "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "MINISTACK_HOST": "localhost",
        "LAMBDA_EXECUTOR": "local", "AUTH": "true", "PERSIST_STATE": "0",
        # Both would listen on every interface in spite of BIND_HOST.
        "IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0",
        "STATE_DIR": str(folder), "S3_DATA_DIR": str(folder / "s3"), "TMPDIR": str(folder / "tmp"),
    }  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [EMULATOR / "python", Path(__file__).with_name("launcher.py")],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        until_ready(f"{url}/_ministack/ready", process)
        yield Emulator(url, folder, process.pid)
    finally:
        _end(process)


def until_ready(url: str, process: subprocess.Popen[bytes], *, every: float = 0.05) -> None:
    """Wait for an answer of 200."""
    last = time.monotonic() + READY_SECONDS_MAX
    while True:
        assert process.poll() is None, f"ended with {process.returncode} before it was ready"
        try:
            if httpx.get(url, trust_env=False, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            assert time.monotonic() < last, "not ready in time"
        time.sleep(every)


def build(folder: Path) -> Path:
    """Run `sam build` for this machine, and return the folder of what it built."""
    built = folder / "build"
    environment = for_sam(folder, {"PLATFORM": "host", "PYTHON": str(EMULATOR / "python")})
    run(["build", "--build-dir", built, "--parameter-overrides", "Architecture=x86_64"], environment, cwd=ROOT)
    return built


def deploy(emulator: Emulator, built: Path, parameters: Mapping[str, str]) -> Stack:
    """Run `sam deploy` with the defaults of samconfig.toml."""
    overrides = [f"{name}={value}" for name, value in parameters.items()]
    command: list[str | Path] = [
        "deploy", "--template-file", built / "template.yaml", "--stack-name", STACK, "--no-confirm-changeset",
        "--no-progressbar", "--config-file", ROOT / "samconfig.toml", "--parameter-overrides", *overrides,
    ]  # fmt: skip
    run(command, for_sam(emulator.folder, ROOT_KEYS | {"AWS_ENDPOINT_URL": emulator.url}), cwd=built)
    return described(emulator)


def described(emulator: Emulator) -> Stack:
    """Return the stack as CloudFormation describes it."""
    cloudformation = emulator.client("cloudformation")
    found = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
    summaries = cloudformation.describe_stack_resources(StackName=STACK)["StackResources"]
    return Stack(
        emulator,
        {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]},
        {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in summaries if "PhysicalResourceId" in one},
    )


def run(arguments: Sequence[str | Path], environment: Mapping[str, str], *, cwd: Path) -> str:
    """Run SAM's command line to its end, which is to be a success, and return what it printed."""
    done = subprocess.run(
        [SAM, *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
        text=True,
    )
    assert done.returncode == 0, f"sam {arguments[0]}: {done.stdout[-4000:]}"
    return done.stdout


def for_sam(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of SAM's command line."""
    mine = {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_TO_PIP)}
    temporary = folder / "sam"
    temporary.mkdir(exist_ok=True)
    # The layer's packages are of the interpreter that runs the functions.
    path = os.pathsep.join((str(EMULATOR), os.environ["PATH"]))
    return mine | {"PATH": path, "SAM_CLI_TELEMETRY": "0", "TMPDIR": str(temporary), **more}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        # Whatever of its workers is left; they are of the group that it was started as.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
