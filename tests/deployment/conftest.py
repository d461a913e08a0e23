"""One emulator and one deployed stack for all checks of a run; each check has budgets and keys of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo_process import DemoProvider, demo_provider
from tests.deployment import stack as deployed
from tests.deployment.proof import PROVIDER_KEY, Proof, configured
from tests.deployment.stack import Emulator, Stack


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything of the run that is a file."""
    return tmp_path_factory.mktemp("deployment")


@pytest.fixture(scope="session")
def built(folder: Path) -> Path:
    """What `sam build` makes."""
    return deployed.build(folder)


@pytest.fixture(scope="session")
def emulator(folder: Path) -> Iterator[Emulator]:
    """A running emulator."""
    with deployed.emulator(folder / "emulator") as running:
        yield running


@pytest.fixture(scope="session")
def parameters(emulator: Emulator) -> dict[str, str]:
    """What a deployment on this machine needs beyond the defaults."""
    return {
        "Architecture": "x86_64",
        "WebAdapterLayerArn": emulator.publish_adapter(),
        "AlertEmail": "platform@example.com",
        # The account's role for the logs of API Gateway is not there.
        "ApiLogging": "no",
    }


@pytest.fixture(scope="session")
def stack(emulator: Emulator, built: Path, parameters: dict[str, str]) -> Stack:
    """The deployed stack, without a configuration."""
    return deployed.deploy(emulator, built, parameters)


@pytest.fixture(scope="session")
def provider() -> Iterator[DemoProvider]:
    """A provider that knows one key."""
    with demo_provider(expected_key=PROVIDER_KEY) as running:
        yield running


@pytest.fixture(scope="session")
def proof(stack: Stack, provider: DemoProvider) -> Proof:
    """The stack, configured by an operator, in front of the provider."""
    return configured(stack, provider)
