"""Where a provider may be: what a configuration may say, and what a connection is made to whatever a name resolves to."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.configuration_reader import parse
from spendgate.core.address import Network, may_reach, network_of
from spendgate.core.kind import KINDS
from spendgate.errors import ConfigurationInvalid
from spendgate.providers.attempt import Outbound, Pool, Unclear, Unsent
from spendgate.providers.recovery import recover
from tests.builders import a_provider, a_reservation

METADATA = ["169.254.169.254", "fe80::1", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
            "169.254.170.2", "100.100.100.200", "168.63.129.16"]  # fmt: skip
PRIVATE = ["10.0.0.1", "172.16.5.4", "192.168.1.1", "100.64.0.1", "fd12:3456::1", "::ffff:10.0.0.1"]
SPECIAL = ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1",
           "2002:a9fe:a9fe::1", "2001::1", "2001:db8::1", "fec0::1", "::7f00:1", "192.0.0.192"]  # fmt: skip
LOOPBACK = ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]
PUBLIC = ["1.1.1.1", "104.18.6.192", "2606:4700::6812:6c0", "::ffff:1.1.1.1"]


def configured(url: str, *, local: bool = False, private: bool = False) -> str | None:
    """Return what is wrong with a base URL; None where it is accepted."""
    own = ", private_network: true" if private else ""
    text = f"version: 1\nproviders:\n  p: {{dialect: openai, base_url: '{url}'{own}}}\n"
    try:
        parse(text, loopback_http=local)
    except ConfigurationInvalid as error:
        (problem,) = error.problems
        assert problem.place == "providers.p.base_url"
        assert url not in problem.message
        return problem.message
    return None


def bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


# -- as it is written


@pytest.mark.parametrize("address", [*METADATA, *PRIVATE, *SPECIAL, *LOOPBACK])
def test_an_address_that_is_not_public_is_refused_when_it_is_configured(address: str) -> None:
    assert configured(f"https://{bracketed(address)}/v1") is not None
    assert configured(f"http://{bracketed(address)}/v1") is not None


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_accepted(address: str) -> None:
    assert configured(f"https://{bracketed(address)}/v1") is None


@pytest.mark.parametrize("address", [*METADATA, *SPECIAL])
def test_neither_a_local_run_nor_a_declaration_opens_metadata_services(address: str) -> None:
    for scheme in ("http", "https"):
        assert configured(f"{scheme}://{bracketed(address)}", local=True, private=True) is not None


@pytest.mark.parametrize("address", PRIVATE)
def test_a_model_that_a_team_hosts_itself_is_declared(address: str) -> None:
    for scheme in ("http", "https"):
        assert configured(f"{scheme}://{bracketed(address)}:8000/v1", private=True) is None


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "0", "0x", "1.1.1.1.",
     "169.254.43518", "0xa9fea9fe", "2852039166", "1.2.3.0x4", "example.com.0x7f000001", "127.0.0.1.",
     "[fe80::1%25eth0]", "[::1%25lo]", "[v1.fe80]", "%31%32%37.0.0.1", "localhost%2e", "xn--.", "-a.com", "a..com",
     ".example.com", "example.com.", "ex%61mple.com", "\u24dbocalhost", "\uff11\uff12\uff17.0.0.1"],
)  # fmt: skip
def test_no_other_spelling_of_an_address_or_a_name_gets_by(host: str) -> None:
    assert configured(f"https://{host}/v1") is not None
    assert configured(f"https://{host}/v1", private=True) is not None


@pytest.mark.parametrize(
    "host",
    ["LocalHost", "x.localhost", "metadata", "metadata.google.internal", "instance-data.ec2.internal",
     "ip-10-0-0-1.eu-west-1.compute.internal", "vllm.corp", "printer.local", "nas.lan", "router.home.arpa", "db.private"],
)  # fmt: skip
def test_a_name_of_a_private_network_is_refused_unless_it_is_declared(host: str) -> None:
    assert configured(f"https://{host}/v1") is not None
    is_this_machine = host.lower().endswith("localhost")
    assert (configured(f"http://{host}:8000/v1", private=True) is None) == (not is_this_machine)


@pytest.mark.parametrize(
    "url",
    ["https://a.example.com/v1/../admin", "https://a.example.com/./v1", "https://a.example.com//v1",
     "https://a.example.com/v1;x", "https://a.example.com/%2e%2e/v1", "https://a.example.com/v1%00",
     "https://a.example.com:22/v1", "https://a.example.com:80", "https://a.example.com:25", "https://a@b.example.com",
     "https://a.example.com/v1?x=1", "https://a.example.com/v1#x", "//a.example.com", "https:a.example.com",
     "https:///a.example.com", "gopher://a.example.com", "unix:///var/run/docker.sock", "https://a.example.com:+443"],
)  # fmt: skip
def test_a_url_of_a_strange_form_is_refused(url: str) -> None:
    assert configured(url) is not None
    assert configured(url, private=True) is not None


@pytest.mark.parametrize(
    "url",
    ["https://api.openai.com/v1", "https://x.openai.azure.com/openai/v1/", "https://API.example.com:8443",
     "https://bedrock-runtime.eu-west-1.amazonaws.com", "https://a.example.com/projects/p:1/v1beta"],
)  # fmt: skip
def test_the_usual_addresses_are_accepted(url: str) -> None:
    assert configured(url) is None


def test_every_host_that_a_kind_names_may_be_configured() -> None:
    hosts = {host.strip("*.") for kind in KINDS.values() for host in kind.hosts if not host.endswith("*")}

    assert hosts
    assert [host for host in sorted(hosts) if configured(f"https://{host}") is not None] == []


# -- as it resolves

v4 = st.integers(0, 2**32 - 1).map(IPv4Address)
v6 = st.integers(0, 2**128 - 1).map(IPv6Address) | v4.map(lambda one: IPv6Address(f"::ffff:{one}"))


@given(address=v4 | v6)
def test_no_public_provider_is_at_an_address_that_the_standard_library_calls_private(
    address: IPv4Address | IPv6Address,
) -> None:
    meant = getattr(address, "ipv4_mapped", None) or address

    if may_reach(address, "public"):
        assert meant.is_global
        assert not any((meant.is_private, meant.is_loopback, meant.is_link_local, meant.is_multicast))
    if meant.is_loopback or meant.is_link_local or meant.is_unspecified or meant.is_multicast:
        assert not may_reach(address, "either")
        assert not may_reach(address, "private")


@pytest.mark.parametrize(
    ("network", "reached"),
    [("public", PUBLIC), ("private", PRIVATE), ("either", PRIVATE + PUBLIC), ("loopback", LOOPBACK)],
)  # fmt: skip
def test_a_network_is_exactly_its_addresses(network: Network, reached: list[str]) -> None:
    every = METADATA + PRIVATE + SPECIAL + LOOPBACK + PUBLIC

    assert [one for one in every if may_reach(ip_address(one), network)] == [one for one in every if one in reached]


def test_a_provider_s_network_comes_from_its_entry() -> None:
    networks = {
        network_of(a_provider(base_url="https://api.example.com")): "public",
        network_of(a_provider(base_url="https://vllm.corp", private_network=True)): "either",
        network_of(a_provider(base_url="http://vllm.corp", private_network=True)): "private",
        network_of(a_provider(base_url="http://localhost:9", private_network=True)): "loopback",
    }

    assert all(found == expected for found, expected in networks.items())
    assert len(networks) == 4


class Listener:
    """Counts who connects to a port of loopback, and hangs up on each."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._hang_up)
        self._thread.start()

    def close(self) -> None:
        # Wakes the thread, which a close alone would leave waiting.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _hang_up(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


class Resolver:
    """Answers with one list of addresses after the other, and keeps the last."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        assert host == "api.example.com"
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def send(url: str, resolver: Resolver, network: Network) -> Exception:
    """Send a request that nobody answers, and return the error."""

    async def sending() -> Exception:
        pool = Pool(clock=lambda: datetime.now(UTC), connect_seconds=2, idle_seconds=4, resolve=resolver)
        outbound = Outbound(kind=KINDS["openai"], url=url, body=b"{}", headers=(), secret=None, network=network)
        try:
            async with asyncio.timeout(20):
                answer = await pool.send(outbound)
        except Exception as error:  # noqa: BLE001 - returned to the test
            return error
        else:
            await answer.aclose()
            raise AssertionError("somebody answered")
        finally:
            await pool.aclose()

    return asyncio.run(sending())


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::ffff:127.0.0.1"],
        ["1.1.1.1", "127.0.0.1"],
        ["10.1.2.3"],
        ["fd00:ec2::254"],
    ],
)
def test_a_public_name_that_resolves_to_another_address_is_not_connected_to(
    listener: Listener, found: list[str]
) -> None:
    error = send(f"http://api.example.com:{listener.port}/v1", Resolver(found), "public")

    assert isinstance(error, Unsent)
    assert "address that it may not have" in str(error)
    assert all(address not in str(error) for address in found)
    assert listener.connections == 0


def test_what_was_judged_is_what_is_connected_to(listener: Listener) -> None:
    """The second answer would lead elsewhere; nobody asks for it."""
    resolver = Resolver(["127.0.0.1"], ["169.254.169.254"])

    error = send(f"http://api.example.com:{listener.port}/v1", resolver, "loopback")

    assert resolver.asked == 1
    assert listener.connections == 1
    assert isinstance(error, Unclear)


def test_the_next_address_is_tried_where_the_first_takes_no_connection(listener: Listener) -> None:
    send(f"http://api.example.com:{listener.port}/v1", Resolver(["127.0.0.9", "127.0.0.1"]), "loopback")

    assert listener.connections == 1


def test_plain_text_of_a_declared_private_host_does_not_go_out_into_the_world() -> None:
    error = send("http://api.example.com:8000/v1", Resolver(["1.1.1.1"]), "private")

    assert isinstance(error, Unsent)


def test_a_name_that_nobody_knows_is_a_request_that_was_not_sent() -> None:
    class Nobody(Resolver):
        def __call__(self, host: str, port: int) -> Sequence[str]:
            raise socket.gaierror("no such name")

    assert isinstance(send("https://api.example.com/v1", Nobody([]), "public"), Unsent)
    assert isinstance(send("https://api.example.com/v1", Resolver([]), "public"), Unsent)


def test_a_provider_is_asked_about_a_lost_answer_at_its_own_addresses_only(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("127.0.0.1", listener.port))])
    provider = a_provider(base_url=f"https://api.example.com:{listener.port}/v1", kind="openai")
    reservation = a_reservation(dialect="openai-responses", response_id="resp_1", model="m")

    recovered = recover(provider, reservation, lambda _: "secret")

    assert recovered.report is None
    assert "address that it may not have" in recovered.said
    assert listener.connections == 0


def test_no_redirect_is_followed() -> None:
    async def moved() -> int:
        hits = []

        async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            hits.append(head)
            location = f"location: http://127.0.0.1:{port}/elsewhere\r\n".encode()
            writer.write(b"HTTP/1.1 307 Moved\r\n" + location + b"content-length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(app, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pool = Pool(clock=lambda: datetime.now(UTC), connect_seconds=2, idle_seconds=4)
        url = f"http://127.0.0.1:{port}/v1"
        async with server:
            answer = await pool.send(
                Outbound(kind=KINDS["openai"], url=url, body=b"{}", headers=(), secret="s", network="loopback")
            )
            assert answer.status == 307
            assert "location" not in dict(answer.headers)
            await answer.aclose()
            await pool.aclose()
        return len(hits)

    assert asyncio.run(moved()) == 1


def test_httpx_still_has_the_pool_that_is_replaced() -> None:
    """The one private name that is relied on: without it no address would be judged, which the tests above show too."""
    assert hasattr(httpx.AsyncHTTPTransport(), "_pool")
