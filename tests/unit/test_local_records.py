"""What the keeper remembers: whole or not at all, and nothing shared between clusters."""

from __future__ import annotations

import os
import socket
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.local import allocation, components
from boatyard.platforms.drivers.local.certificates import RENEW_BEFORE, ensure_certificates
from boatyard.platforms.drivers.local.records import (
    ClusterRecord,
    ClusterRecords,
    NodeRecord,
    slug_of,
    write_durably,
)
from boatyard.platforms.drivers.local.versions import check_step
from boatyard.platforms.port import DesiredCluster

NOW = datetime(2026, 1, 1, tzinfo=UTC)

WANTED = DesiredCluster(
    name="web",
    version="1.36.3",
    release_image="",
    api_name="api.web.example",
    api_address="203.0.113.4",
    ingress_name="*.apps.web.example",
    ingress_address="203.0.113.5",
    pod_cidr=allocation.POD_CIDR,
    service_cidr=allocation.SERVICE_CIDR,
    machine_cidr="10.4.0.0/24",
    gateway="10.4.0.1",
    ssh_public_key="",
    pull_secret="",
)


def record(key: str = "order-1/cluster", *, members: int = 1, **fields: object) -> ClusterRecord:
    ports = {name: 20_000 + n for n, name in enumerate(components.port_names(members))}
    return ClusterRecord(
        key=key,
        slug=slug_of(key),
        hub="local",
        wanted=WANTED,
        user=None,
        ports=ports,
        members=members,
        real=False,
        made_at=1.0,
        **fields,  # type: ignore[arg-type]
    )


def test_a_record_is_read_again_by_the_next_keeper(tmp_path: Path) -> None:
    node = NodeRecord(
        key="order-1/node/compute-0",
        slot="compute-0",
        node_set="compute",
        host="r1-n1",
        address="10.4.0.10",
        number=0,
        made_at=2.0,
    )
    saved = ClusterRecords(tmp_path).save(record(nodes={node.key: node}))
    again = ClusterRecords(tmp_path)
    assert again.find("order-1/cluster") == saved
    assert again.find_node_by_host("r1-n1") == node
    assert again.find("order-2/cluster") is None


def test_a_directory_without_a_record_was_never_promised_to_anybody(tmp_path: Path) -> None:
    """We died between making the directory and writing the record, or in the middle of writing."""
    (tmp_path / "half").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "cluster.json.new").write_bytes(b'{"key": "order-')
    assert list(ClusterRecords(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b'{"key": "order-', id="torn"),
        pytest.param(b"", id="empty"),
        pytest.param(b'{"key": "order-1/cluster"}', id="of another release"),
        pytest.param(b'{"key": "\xff\xfe"}', id="no text"),
    ],
)
def test_a_record_that_cannot_be_read_is_nobodys_to_remove(tmp_path: Path, damage: bytes) -> None:
    records = ClusterRecords(tmp_path)
    place = tmp_path / records.save(record()).slug / "cluster.json"
    records.save(record("order-2/cluster"))
    place.write_bytes(damage)
    again = ClusterRecords(tmp_path)
    assert place.read_bytes() == damage
    assert [one.key for one in again] == ["order-2/cluster"], "the others are there"
    assert list(again.unreadable.values()) == [place]
    with pytest.raises(Unavailable, match=str(place)):
        again.find("order-1/cluster")


def test_a_removal_that_was_cut_short_is_finished_by_the_next_keeper(tmp_path: Path) -> None:
    slug = ClusterRecords(tmp_path).save(record()).slug
    os.rename(tmp_path / slug, tmp_path / f".gone-{slug}")
    assert list(ClusterRecords(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_writing_follows_no_link_that_somebody_planted(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "cluster.json.new").symlink_to(victim)
    with pytest.raises(OSError):
        write_durably(tmp_path / "cluster.json", b"mine")
    assert victim.read_text() == "precious"


def test_a_port_that_is_taken_or_in_use_is_not_chosen() -> None:
    with socket.socket() as busy:
        first = allocation.choose_ports(("api",), (), seed="x")["api"]
        busy.bind((allocation.LOOPBACK, first))
        busy.listen()
        second = allocation.choose_ports(("api",), (), seed="x")["api"]
        third = allocation.choose_ports(("api",), {second}, seed="x")["api"]
    assert len({first, second, third}) == 3


def test_no_port_left_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        allocation.choose_ports(("api",), set(allocation.PORT_RANGE), seed="x")


def test_ports_are_below_those_of_outgoing_connections() -> None:
    """Else a stopped cluster could lose its port to somebody's connection."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert allocation.PORT_RANGE.stop <= lowest


@pytest.mark.parametrize(
    "number, expected",
    [
        (0, "10.128.0.0/24"),
        (1, "10.128.1.0/24"),
        (1023, "10.131.255.0/24"),
        (1024, "10.128.0.0/24"),
    ],
)
def test_every_node_has_a_pod_range_of_its_own(number: int, expected: str) -> None:
    assert allocation.pod_range("10.128.0.0/14", number) == expected


@pytest.mark.parametrize("cidr", ["10.0.0.0/28", "fd00::/56"])
def test_odd_pod_ranges_are_divided_too(cidr: str) -> None:
    assert allocation.pod_range(cidr, 3)


def test_nodes_have_addresses_on_the_subnet_as_long_as_it_has_some() -> None:
    assert allocation.node_address("10.4.0.0/24", 2, otherwise="169.254.1.7") == "10.4.0.12"
    assert allocation.node_address("10.4.0.0/28", 9, otherwise="169.254.1.7") == "169.254.1.7"


def test_three_members_have_sockets_ports_and_peers_of_their_own() -> None:
    three = record(members=3)
    etcds = components.etcds(three)
    assert (
        len({argument for etcd in etcds for argument in etcd.arguments if "--name" in argument})
        == 3
    )
    assert all("--peer-client-cert-auth=true" in etcd.arguments for etcd in etcds)
    (balancer,) = components.balancers(three)
    upstreams = [word for word in balancer.arguments if word.startswith("--upstream")]
    assert len(set(upstreams)) == 3
    assert components.server_url(three) == f"https://127.0.0.1:{three.ports['api']}"


def test_what_is_promised_of_an_api_server_is_on_its_command_line() -> None:
    (server,) = components.api_servers(record())
    words = server.arguments
    assert "--anonymous-auth=false" in words
    assert any(word.startswith("--encryption-provider-config=") for word in words)
    assert any(word.startswith("--audit-log-path=") for word in words)
    assert "--bind-address=127.0.0.1" in words


def test_two_clusters_share_no_authority_and_no_key(tmp_path: Path) -> None:
    one, two = record("order-1/cluster"), record("order-2/cluster")
    for each in (one, two):
        (tmp_path / each.slug).mkdir()
        ensure_certificates(
            each, tmp_path / each.slug, server="https://x", inside="https://y", now=NOW
        )
    mine = {path.name: path.read_bytes() for path in (tmp_path / one.slug).rglob("*.key")}
    others = {path.name: path.read_bytes() for path in (tmp_path / two.slug).rglob("*.key")}
    assert mine.keys() == others.keys()
    assert set(mine.values()).isdisjoint(others.values())


def test_certificates_are_renewed_before_they_end_and_authorities_stay(tmp_path: Path) -> None:
    mine = record()

    def make(now: datetime) -> tuple[bool, bytes, bytes]:
        made = ensure_certificates(mine, tmp_path, server="https://x", inside="https://y", now=now)
        pki = tmp_path / "run" / "pki"
        return made, (pki / "apiserver.crt").read_bytes(), (pki / "ca.crt").read_bytes()

    made, leaf, authority = make(NOW)
    assert made
    assert make(NOW + timedelta(days=30)) == (False, leaf, authority)
    late = NOW + timedelta(days=365) - RENEW_BEFORE + timedelta(hours=1)
    renewed, new_leaf, same = make(late)
    assert renewed
    assert new_leaf != leaf
    assert same == authority
    assert x509.load_pem_x509_certificate(new_leaf).not_valid_after_utc > late + RENEW_BEFORE


def test_a_certificate_without_its_key_is_made_anew(tmp_path: Path) -> None:
    """We died between the two files."""
    ensure_certificates(record(), tmp_path, server="https://x", inside="https://y", now=NOW)
    (tmp_path / "run" / "pki" / "scheduler.crt").unlink()
    assert ensure_certificates(record(), tmp_path, server="https://x", inside="https://y", now=NOW)
    assert (tmp_path / "run" / "pki" / "scheduler.crt").exists()


def test_the_administrators_keys_are_readable_by_us_alone(tmp_path: Path) -> None:
    group = 1_500_000_000 if os.geteuid() == 0 else None
    mine = ClusterRecord(
        **{f: getattr(record(), f) for f in ClusterRecord.__struct_fields__} | {"user": group}
    )
    ensure_certificates(mine, tmp_path, server="https://x", inside="https://y", now=NOW)
    for path in (tmp_path / "private").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_gid != 1_500_000_000


@pytest.mark.parametrize(
    "before, after, fine",
    [
        pytest.param("1.35.4", "1.36.3", True, id="the next minor"),
        pytest.param("1.35.4", "1.35.1", True, id="another patch"),
        pytest.param("1.36.3", "1.35.4", False, id="back a minor"),
        pytest.param("1.34.0", "1.36.3", False, id="two minors at once"),
    ],
)
def test_versions_go_one_minor_at_a_time(before: str, after: str, fine: bool) -> None:
    if fine:
        check_step(before, after)
        return
    with pytest.raises(Refused):
        check_step(before, after)


def test_a_jump_is_refused_with_the_path() -> None:
    with pytest.raises(Refused, match=r"go to 1\.35 first"):
        check_step("1.34.0", "1.36.3")


def test_the_name_asked_for_is_in_the_servers_certificate(tmp_path: Path) -> None:
    ensure_certificates(record(), tmp_path, server="https://x", inside="https://y", now=NOW)
    certificate = x509.load_pem_x509_certificate(
        (tmp_path / "run" / "pki" / "apiserver.crt").read_bytes()
    )
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "api.web.example" in names.get_values_for_type(x509.DNSName)
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert {"127.0.0.1", "203.0.113.4", "10.4.0.1", "10.96.0.1"} <= addresses
