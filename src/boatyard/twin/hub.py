"""What one hub's part of the data centre holds, indexed so that every question is cheap. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

import msgspec

from boatyard.model.errors import Refused
from boatyard.twin.layout import HOSTS_PER_RACK, HubLayout

KINDS = (
    "host", "port", "network", "subnet", "binding", "floating", "record", "cluster", "node", "backup"
)  # fmt: skip
# A host can be held once, and its switch port bound once: their name is their identity. One key
# may hold two of them by mistake, and the twin must be able to show that. Others are found by key.
KINDS_FOUND_BY_NAME = frozenset({"host", "port"})
# Kinds whose names are unique per hub. A node's name is its host.
KINDS_WITH_UNIQUE_NAMES = frozenset({"network", "subnet", "floating", "record", "node"})


class Thing(msgspec.Struct, array_like=True, gc=False, eq=False):
    """Something made in the data centre. It carries the key of the item it was made for."""

    kind: str
    hub: str
    key: str
    name: str  # host name, VLAN id, CIDR, address, DNS name, cluster name
    ref: str = ""  # key of what it depends on: a port's network, a node's cluster
    extra: tuple[str, ...] = ()  # what is particular to the kind; see its service
    made_at: float = 0.0
    ready_at: float = 0.0
    gone_at: float = 0.0  # when its removal is over; 0 unless it is being removed

    @property
    def id(self) -> str:
        return self.name if self.kind in KINDS_FOUND_BY_NAME else self.key


class TwinHost(msgspec.Struct, gc=False):
    """A machine in a rack. Flags say what is wrong with it: broken, off, unready."""

    name: str
    type: str
    number: int
    flags: tuple[str, ...] = ()
    started_at: float = 0.0  # when it last started; 0 when it always ran

    @property
    def is_running(self) -> bool:
        return self.is_usable and "off" not in self.flags

    @property
    def is_usable(self) -> bool:
        return "broken" not in self.flags

    @property
    def rack(self) -> str:
        return f"r{self.number // HOSTS_PER_RACK + 1}"

    @property
    def switch(self) -> str:
        return f"sw-{self.rack}"

    @property
    def port(self) -> str:
        return f"eth{self.number % HOSTS_PER_RACK + 1}"


class TwinHub:
    def __init__(self, name: str, layout: HubLayout, number: int) -> None:
        self.name = name
        self.layout = layout
        self.number = number
        self.hosts = {
            host: TwinHost(host, host_type, host_number)
            for host, host_type, host_number in layout.host_names()
        }
        self.free_hosts: dict[str, list[str]] = {host_type: [] for host_type in layout.hosts}
        self.usable_counts: dict[str, int] = dict(layout.hosts)
        for host in self.hosts.values():
            self.free_hosts[host.type].append(host.name)
        for names in self.free_hosts.values():
            names.sort()
        self.things: dict[str, dict[str, Thing]] = {kind: {} for kind in KINDS}
        self.things_by_name: dict[str, dict[str, Thing]] = {
            kind: {} for kind in KINDS_WITH_UNIQUE_NAMES
        }
        # What depends on what: ports on a network, addresses on a subnet, nodes on a cluster.
        self.dependents_by_kind: dict[str, dict[str, dict[str, Thing]]] = {
            "port": {}, "binding": {}, "floating": {}, "node": {}
        }  # fmt: skip

    def mac_address(self, host: TwinHost) -> str:
        number = host.number
        return f"52:54:00:{self.number & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"

    def host_facts(self, host: TwinHost) -> dict[str, str]:
        return {
            "rack": host.rack,
            "switch": host.switch,
            "port": host.port,
            "mac": self.mac_address(host),
        }

    def get_host(self, name: str) -> TwinHost:
        host = self.hosts.get(name)
        if host is None:
            raise Refused(f"there is no host {name!r} on hub {self.name}")
        return host

    def list_dependents(self, kind: str, key: str) -> Mapping[str, Thing]:
        """Things of that kind that depend on the thing with that key, by their own id."""
        return self.dependents_by_kind[kind].get(key, {})

    def store(self, thing: Thing) -> Thing | None:
        """Stores a thing. Returns the one it replaces, if any."""
        table = self.things[thing.kind]
        old = table.get(thing.id)
        if old is not None:
            self._unindex(old)
        table[thing.id] = thing
        self._index(thing)
        return old

    def remove(self, thing: Thing) -> None:
        del self.things[thing.kind][thing.id]
        self._unindex(thing)

    def set_host_flags(self, name: str, flags: Mapping[str, bool]) -> None:
        """Switches flags of a host on or off."""
        host = self.get_host(name)
        was_usable = host.is_usable
        other_flags = [flag for flag in host.flags if flag not in flags]
        host.flags = tuple(sorted([*other_flags, *(flag for flag, on in flags.items() if on)]))
        self.usable_counts[host.type] += host.is_usable - was_usable
        self._update_free(host)

    def _index(self, thing: Thing) -> None:
        if thing.kind == "host":
            self._update_free(self.hosts[thing.name])
        if thing.kind in KINDS_WITH_UNIQUE_NAMES:
            self.things_by_name[thing.kind][thing.name] = thing
        if thing.kind in self.dependents_by_kind:
            self.dependents_by_kind[thing.kind].setdefault(thing.ref, {})[thing.id] = thing

    def _unindex(self, thing: Thing) -> None:
        if thing.kind == "host":
            self._update_free(self.hosts[thing.name])
        if thing.kind in KINDS_WITH_UNIQUE_NAMES:
            del self.things_by_name[thing.kind][thing.name]
        if thing.kind in self.dependents_by_kind:
            siblings = self.dependents_by_kind[thing.kind][thing.ref]
            del siblings[thing.id]
            if not siblings:
                del self.dependents_by_kind[thing.kind][thing.ref]

    def _update_free(self, host: TwinHost) -> None:
        """Keeps the free list sorted; moving twenty thousand pointers costs microseconds."""
        names = self.free_hosts[host.type]
        index = bisect_left(names, host.name)
        is_listed = index < len(names) and names[index] == host.name
        is_free = host.is_usable and host.name not in self.things["host"]
        if is_free and not is_listed:
            insort(names, host.name)
        elif is_listed and not is_free:
            del names[index]
