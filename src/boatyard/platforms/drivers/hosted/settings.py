"""Combines the settings of a template and of a hub for hosted clusters. Pure.

A template's setting wins over the hub's. Immutable settings (`kept`) are stored with the cluster: changing them on
the hub does not affect existing clusters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from boatyard.model.errors import Refused, Violation
from boatyard.model.hub_names import is_label

PREFIX = "hosted."
VM_SIZE_PREFIX = "hosted.vm."
ANY_HOST_TYPE = "default"  # the size of host types that have none of their own

AGENT, KUBEVIRT, NONE = "Agent", "KubeVirt", "None"
PLATFORMS = (AGENT, KUBEVIRT, NONE)
IN_PLACE, REPLACE = "InPlace", "Replace"
LOAD_BALANCER, NODE_PORT, ROUTE = "LoadBalancer", "NodePort", "Route"

_QUANTITY = re.compile(r"[1-9][0-9]*(Mi|Gi|Ti|M|G|T)")
_DURATION = re.compile(r"([0-9]+(ms|s|m|h))+")
_DOMAIN = re.compile(r"([a-zA-Z0-9-]+\.)+[a-zA-Z]{2,}")
_CORES = re.compile(r"[1-9][0-9]{0,2}")
_LARGER_UNITS = {"Mi": ("Gi", 1024), "Gi": ("Ti", 1024), "M": ("G", 1000), "G": ("T", 1000)}
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


@dataclass(frozen=True)
class VmSize:
    cores: int
    memory: str
    disk: str


@dataclass(frozen=True)
class HostedSettings:
    """The resolved settings of one hosted cluster."""

    platform: str
    agent_namespace: str
    publish: str
    publish_address: str
    route_domain: str
    network_type: str
    availability: str
    infra_availability: str
    etcd_size: str
    etcd_storage_class: str
    fips: bool
    passthrough: bool
    upgrade_type: str
    auto_repair: bool
    drain_timeout: str
    vm_storage_class: str
    vm_sizes: Mapping[str, VmSize]
    release_image: str
    pull_secret: str
    immutable: Mapping[str, str]  # the immutable settings, which are stored with the cluster

    def vm_size(self, host_type: str) -> VmSize:
        """Returns the size of virtual machines for this host type. Refused when none is set."""
        size = self.vm_sizes.get(host_type) or self.vm_sizes.get(ANY_HOST_TYPE)
        if size is not None:
            return size
        raise Refused(
            "",
            Violation(
                f"{VM_SIZE_PREFIX}{host_type or ANY_HOST_TYPE}",
                f"no size of virtual machines is set for host type {host_type!r}",
                "set it for the hub or the template, as in cores=4,memory=16Gi,disk=64Gi",
            ),
            reason="NoVmSize",
        )


@dataclass(frozen=True)
class HostedSetting:
    """One setting. A `kept` one cannot change once the cluster exists; `fits` tells whether a value is allowed."""

    default: str
    is_valid: Callable[[str], bool]
    values: str
    immutable: bool = True


def _one_of(*values: str) -> tuple[Callable[[str], bool], str]:
    return (lambda value: value in values), f"one of {', '.join(values)}"


def _or_nothing(fits: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda value: not value or fits(value)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda value: pattern.fullmatch(value) is not None


def _is_reference(value: str) -> bool:
    namespace, _, name = value.partition("/")
    return is_label(namespace) and is_label(name)


_AVAILABILITY = _one_of("HighlyAvailable", "SingleReplica")
_FLAG = _one_of("true", "false")

SETTINGS: Mapping[str, HostedSetting] = {
    "hosted.platform": HostedSetting("", *_one_of(*PLATFORMS)),
    "hosted.agent-namespace": HostedSetting("", _or_nothing(is_label), "a namespace"),
    "hosted.publish": HostedSetting(LOAD_BALANCER, *_one_of(LOAD_BALANCER, NODE_PORT, ROUTE)),
    "hosted.publish-address": HostedSetting("", lambda value: True, "a host name or address"),
    "hosted.route-domain": HostedSetting("", _or_nothing(_matches(_DOMAIN)), "a domain"),
    "hosted.network-type": HostedSetting(
        "OVNKubernetes", *_one_of("OVNKubernetes", "OpenShiftSDN", "Calico", "Other")
    ),
    "hosted.availability": HostedSetting("HighlyAvailable", *_AVAILABILITY),
    "hosted.infra-availability": HostedSetting("SingleReplica", *_AVAILABILITY),
    "hosted.etcd-size": HostedSetting("8Gi", _matches(_QUANTITY), "a size such as 8Gi"),
    "hosted.etcd-storage-class": HostedSetting(
        "", lambda value: True, "the name of a storage class"
    ),
    "hosted.fips": HostedSetting("false", *_FLAG),
    "hosted.base-domain-passthrough": HostedSetting("false", *_FLAG),
    "hosted.upgrade-type": HostedSetting("", *_one_of("", IN_PLACE, REPLACE)),
    "hosted.auto-repair": HostedSetting("", *_one_of("", "true", "false"), immutable=False),
    "hosted.drain-timeout": HostedSetting(
        "15m", _matches(_DURATION), "a time such as 15m", immutable=False
    ),
    "hosted.vm-storage-class": HostedSetting(
        "", lambda value: True, "a storage class", immutable=False
    ),
    "hosted.release-image": HostedSetting(
        "",
        _or_nothing(lambda value: "{version}" in value),
        "an image with {version}",
        immutable=False,
    ),
    "hosted.pull-secret": HostedSetting(
        "", _or_nothing(_is_reference), "<namespace>/<name> of a Secret on the hub", immutable=False
    ),
}


def resolve_settings(
    template: Mapping[str, str], hub: Mapping[str, str], immutable: Mapping[str, str] | None = None
) -> HostedSettings:
    """Resolves the settings of one cluster. Refused with every setting that is invalid.

    `immutable` are the settings stored when the cluster was created; None before.
    """
    violations = [*_unknown(template, "template"), *_unknown(hub, "hub")]
    values: dict[str, str] = {}
    for name, setting in SETTINGS.items():
        source = hub if immutable is None or not setting.immutable else immutable
        value = template.get(name) or source.get(name) or setting.default
        values[name] = value
        if not setting.is_valid(value):
            violations.append(_invalid_value(name, value, setting))
    sizes = {**_sizes(hub, violations), **_sizes(template, violations)}
    if values["hosted.platform"] == AGENT and not values["hosted.agent-namespace"]:
        violations.append(
            Violation(
                "hosted.agent-namespace",
                "the Agent platform takes its hosts from a namespace, and none is named",
                "set it for the hub",
            )
        )
    if violations:
        raise Refused("", *violations, reason="BadSettings")
    return _choice(values, sizes)


def check_hub(settings: Mapping[str, str]) -> None:
    """Refused when a hub has unknown settings or invalid values."""
    violations = _unknown(settings, "hub")
    _sizes(settings, violations)
    for name, setting in SETTINGS.items():
        value = settings.get(name, "")
        if value and not setting.is_valid(value):
            violations.append(_invalid_value(name, value, setting))
    if violations:
        raise Refused("", *violations, reason="BadSettings")


def check_hub_defaults(settings: Mapping[str, str]) -> None:
    """Refused when a hub could not host a cluster whose template has no settings of its own."""
    resolve_settings({}, settings)


def resolve_platform(template: Mapping[str, str], hub: Mapping[str, str]) -> str:
    """Returns the platform that `choose` would return, even when other settings are invalid."""
    name = "hosted.platform"
    return template.get(name) or hub.get(name) or SETTINGS[name].default


def select_hosted_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the hosting settings of a template; they are stored with the cluster."""
    return {name: value for name, value in settings.items() if name.startswith(PREFIX)}


def _choice(values: Mapping[str, str], sizes: Mapping[str, VmSize]) -> HostedSettings:
    platform = values["hosted.platform"]
    # Replacing a virtual machine is cheap; replacing a host is not.
    virtual = platform == KUBEVIRT
    return HostedSettings(
        platform=platform,
        agent_namespace=values["hosted.agent-namespace"],
        publish=values["hosted.publish"],
        publish_address=values["hosted.publish-address"],
        route_domain=values["hosted.route-domain"],
        network_type=values["hosted.network-type"],
        availability=values["hosted.availability"],
        infra_availability=values["hosted.infra-availability"],
        etcd_size=to_canonical_quantity(values["hosted.etcd-size"]),
        etcd_storage_class=values["hosted.etcd-storage-class"],
        fips=values["hosted.fips"] == "true",
        passthrough=virtual and values["hosted.base-domain-passthrough"] == "true",
        upgrade_type=values["hosted.upgrade-type"] or (REPLACE if virtual else IN_PLACE),
        auto_repair=(values["hosted.auto-repair"] or ("true" if virtual else "false")) == "true",
        drain_timeout=to_canonical_duration(values["hosted.drain-timeout"]),
        vm_storage_class=values["hosted.vm-storage-class"],
        vm_sizes=sizes,
        release_image=values["hosted.release-image"],
        pull_secret=values["hosted.pull-secret"],
        immutable={name: values[name] for name, setting in SETTINGS.items() if setting.immutable},
    )


def _invalid_value(name: str, value: str, setting: HostedSetting) -> Violation:
    problem = f"{value!r} is not understood" if value else "is not set"
    return Violation(name, problem, f"set it to {setting.values}")


def _unknown(settings: Mapping[str, str], owner: str) -> list[Violation]:
    return [
        Violation(name, f"the {owner} sets what there is not", f"there is {', '.join(SETTINGS)}")
        for name in settings
        if name.startswith(PREFIX) and not name.startswith(VM_SIZE_PREFIX) and name not in SETTINGS
    ]


def _sizes(settings: Mapping[str, str], violations: list[Violation]) -> dict[str, VmSize]:
    sizes: dict[str, VmSize] = {}
    for name, value in settings.items():
        if not name.startswith(VM_SIZE_PREFIX):
            continue
        size = _read_size(value)
        if size is None:
            violations.append(
                Violation(
                    name,
                    f"{value!r} is no size of a virtual machine",
                    "write it as cores=4,memory=16Gi,disk=64Gi",
                )
            )
            continue
        sizes[name.removeprefix(VM_SIZE_PREFIX)] = size
    return sizes


def _read_size(text: str) -> VmSize | None:
    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if parts.keys() != {"cores", "memory", "disk"}:
        return None
    quantities = _QUANTITY.fullmatch(parts["memory"]) and _QUANTITY.fullmatch(parts["disk"])
    if not quantities or not _CORES.fullmatch(parts["cores"]):
        return None
    return VmSize(
        cores=int(parts["cores"]),
        memory=to_canonical_quantity(parts["memory"]),
        disk=to_canonical_quantity(parts["disk"]),
    )


def to_canonical_quantity(text: str) -> str:
    """Returns a quantity in Kubernetes' canonical form. HyperShift rewrites it so, and ours must not look changed."""
    unit = text.lstrip("0123456789")
    number = int(text.removesuffix(unit))
    while unit in _LARGER_UNITS and number % _LARGER_UNITS[unit][1] == 0:
        unit, factor = _LARGER_UNITS[unit]
        number //= factor
    return f"{number}{unit}"


def to_canonical_duration(text: str) -> str:
    """Returns a duration in Kubernetes' canonical form, for the same reason: 15m becomes 15m0s."""
    parts = re.findall(r"([0-9]+)(ms|s|m|h)", text)
    total = sum(int(number) * _MILLISECONDS[unit] for number, unit in parts)
    if total < 1000:
        return f"{total}ms" if total else "0s"
    seconds, milliseconds = divmod(total, 1000)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    fraction = f".{milliseconds:03}".rstrip("0") if milliseconds else ""
    front = f"{hours}h" if hours else ""
    return f"{front}{minutes}m{seconds}{fraction}s" if hours or minutes else f"{seconds}{fraction}s"
