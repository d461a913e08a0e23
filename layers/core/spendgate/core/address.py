"""Which addresses a provider may have: public ones, unless its entry or a local run says otherwise.

A base URL is judged twice: as it is written, when it is configured, and by what its name resolves to, when a connection
is made. Never allowed is what answers with credentials or configuration to whoever asks: link-local addresses, and the
metadata services that clouds have elsewhere.
"""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import urlsplit

from spendgate.core.route import Provider

Address = IPv4Address | IPv6Address
# Where a provider may be: "either" is public or private.
Network = Literal["public", "private", "either", "loopback"]

_PORT_FIRST_FREE: Final = 1024
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NAME_LENGTH_MAX: Final = 253
# Parsers take a name for IPv4 whose last label is a number: 2130706433, 0x7f000001, 127.1 (url.spec.whatwg.org, "ends in a
# number checker").
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
# Names that mean something within a network only (RFC 6761, RFC 6762, RFC 8375, ICANN's resolution on .internal; the rest by habit).
_LOCAL_ENDS: Final = frozenset(
    {"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private"} | {"home.arpa"}
)
_PRIVATE: Final = tuple(
    ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
# Metadata services outside of the link-local ranges: Amazon EC2 over IPv6, Alibaba Cloud, Azure's WireServer, Oracle's.
_NEVER: Final = tuple(
    ip_network(text) for text in ("fd00:ec2::/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.0/24")
)
# All of IPv6 that is given out for the world (RFC 4291); 6to4 and Teredo in it lead into IPv4 by another way.
_WORLD: Final = IPv6Network("2000::/3")
_TUNNELS: Final = (IPv6Network("2002::/16"), IPv6Network("2001::/32"))
_NAT64: Final = IPv6Network("64:ff9b::/96")
_IPV4_BITS: Final = 0xFFFFFFFF


def network_of(provider: Provider) -> Network:
    """Return where a provider may be. That a loopback host is allowed was decided when it was configured."""
    parts = urlsplit(provider.base_url)
    if is_loopback(parts.hostname or ""):
        return "loopback"
    if not provider.private_network:
        return "public"
    # Without TLS nothing goes out into the world, whatever a name resolves to.
    return "either" if parts.scheme == "https" else "private"


def may_reach(address: Address, network: Network) -> bool:
    """Tell whether a connection to an address may be made for a provider of this network."""
    address = _meant(address)
    if network == "loopback":
        return address.is_loopback
    if any(address in never for never in _NEVER):
        return False
    if network != "public" and any(address in private for private in _PRIVATE):
        return True
    return network != "private" and _is_public(address)


def is_loopback(host: str) -> bool:
    """Tell whether a host, as it is written, is this machine."""
    address = literal(host)
    return host == "localhost" if address is None else address.is_loopback


def literal(host: str) -> Address | None:
    """Return the address that a host is written as; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def check_host(host: str, *, private: bool) -> None:
    """Raise ValueError, with a sentence, for a host that may not be configured; ``host`` is in small letters."""
    address = literal(host)
    if address is not None:
        if "%" in host or not may_reach(address, "either" if private else "public"):
            raise ValueError("must not be an address for local, private or special use" + _unless(private=private))
        return
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        raise ValueError("must be a name, or an address in its usual form")
    if len(host) > _NAME_LENGTH_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("must have a host name of letters, digits, '-' and '.'")
    if host == "localhost" or host.endswith(".localhost"):
        raise ValueError("must not be this machine (that is for local runs)")
    if not private and (len(labels) == 1 or any(host == end or host.endswith(f".{end}") for end in _LOCAL_ENDS)):
        raise ValueError("must not be a name of a private network" + _unless(private=private))


def check_port(port: int | None, *, scheme: str) -> None:
    """Raise ValueError for a port of another protocol."""
    usual = 443 if scheme == "https" else 80
    if port is not None and port != usual and port < _PORT_FIRST_FREE:
        raise ValueError(f"must have port {usual}, or one from {_PORT_FIRST_FREE} on")


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv4Address):
        return True
    return address in _WORLD and not any(address in tunnel for tunnel in _TUNNELS)


def _meant(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one leads to, where it does."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & _IPV4_BITS)
    return address


def _unless(*, private: bool) -> str:
    return "" if private else " (a model that you host yourself is declared with private_network: true)"
