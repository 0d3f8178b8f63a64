"""Converts an order's spec to that of a ClusterOrder. Pure; the other direction is in `from_kube`.

OSAC's fields are filled as its tools expect them; what they cannot express is in `spec.boatyard`.
"""

from __future__ import annotations

import re
from datetime import datetime

from boatyard.model.generated.boatyard import (
    NO_CLUSTER_ORDER_SECRET_REFERENCE,
    ClusterOrderExtension,
    ClusterOrderSecretReference,
    OrderSpec,
)
from boatyard.orderbook.kube.mapping import kube_json, parameters
from boatyard.orderbook.kube.mapping.from_kube import (
    PARAMETERS_KEY,
    PULL_SECRET_KEY,
    HubOrderSettings,
    Object,
)
from boatyard.roles.parameter_values import decode_secrets

# The fields of a ClusterOrder's spec that we write; other fields are left as they are.
SPEC_FIELDS = frozenset(
    (
        *("templateID", "templateParameters", "nodeRequests", "pullSecret", "sshPublicKey"),
        *("releaseImage", "network", "boatyard"),
    )
)

_TEMPLATE = re.compile(r"[a-zA-Z_][a-zA-Z0-9._]*")
_IMAGE = re.compile(r".+/.+:.+")
_CIDR = re.compile(r"([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}")
_LONGEST_IMAGE, _LONGEST_KEY = 512, 16384


def collect_secrets(spec: OrderSpec) -> dict[str, str]:
    """The contents of the Secret beside the order; empty when the order has no secrets."""
    secrets: dict[str, str] = {}
    if spec.pull_secret:
        secrets[PULL_SECRET_KEY] = spec.pull_secret
    hidden_parameters = _select_parameters(spec, secret=True)
    if hidden_parameters:
        secrets[PARAMETERS_KEY] = parameters.to_text(hidden_parameters)
    return secrets


def to_spec(
    order_id: str,
    spec: OrderSpec,
    *,
    tenant: str,
    order_settings: HubOrderSettings,
    ordered_at: datetime | None,
    deleted_at: datetime | None = None,
    secret_ref: ClusterOrderSecretReference = NO_CLUSTER_ORDER_SECRET_REFERENCE,
) -> Object:
    """The spec of the ClusterOrder. It contains secrets only if the hub is `osac_compatible`."""
    compatible = order_settings.osac_compatible
    visible_parameters = (
        _collect_parameters(spec) if compatible else _select_parameters(spec, secret=False)
    )
    fields: Object = {
        "templateID": spec.template
        if _TEMPLATE.fullmatch(spec.template)
        else _sanitize_template(spec.template),
        "templateParameters": parameters.to_text(visible_parameters),
        "nodeRequests": [
            _node_request(name, node_set.host_type, node_set.size)
            for name, node_set in sorted(spec.node_sets.items())
        ],
        "pullSecret": spec.pull_secret if compatible else "",
        "sshPublicKey": spec.ssh_public_key if _fits_key(spec) else "",
        "releaseImage": spec.release_image if _fits_image(spec) else "",
        "network": {
            name: cidr
            for name, cidr in (("podCIDR", spec.pod_cidr), ("serviceCIDR", spec.service_cidr))
            if _CIDR.fullmatch(cidr)
        },
    }
    fields = {name: value for name, value in fields.items() if value}
    extension = ClusterOrderExtension(
        cluster_id=order_id,
        tenant=tenant,
        cluster_name=spec.cluster_name,
        hub=spec.hub,
        version=spec.version,
        generation=spec.generation,
        ordered_at=ordered_at,
        deleted_at=deleted_at,
        delete_by=spec.delete_by,
        platform_settings=spec.platform_settings,
        rest=spec.rest,
        restore=spec.restore,
        secret_ref=secret_ref,
        parameter_types=parameters.list_unguessable_types(_collect_parameters(spec)),
        template_digest=spec.template_digest,
        template_phases=spec.template_phases,
        labels=spec.labels,
        annotations=spec.annotations,
        project=spec.project,
        display_name=spec.display_name,
        secret_parameters=spec.secret_parameters,
        release_image="" if _fits_image(spec) else spec.release_image,
        ssh_public_key="" if _fits_key(spec) else spec.ssh_public_key,
        pod_cidr="" if _CIDR.fullmatch(spec.pod_cidr) else spec.pod_cidr,
        service_cidr="" if _CIDR.fullmatch(spec.service_cidr) else spec.service_cidr,
    )
    fields["boatyard"] = kube_json.dump(extension)
    if fields["templateID"] != spec.template:
        fields["boatyard"]["template"] = spec.template
    return fields


def _collect_parameters(spec: OrderSpec) -> parameters.Parameters:
    return {**spec.template_parameters, **decode_secrets(spec.secret_values)}


def _select_parameters(spec: OrderSpec, *, secret: bool) -> parameters.Parameters:
    return {
        name: value
        for name, value in _collect_parameters(spec).items()
        if (name in spec.secret_parameters) == secret
    }


def _node_request(name: str, host_type: str, size: int) -> Object:
    """A node request in both forms that OSAC's tools read, at once."""
    node_request: Object = {"nodeSet": name, "resourceClass": host_type, "numberOfNodes": size}
    if host_type:
        node_request["bareMetal"] = {"instanceType": host_type}
    return node_request


def _sanitize_template(template: str) -> str:
    return "_" + re.sub(r"[^a-zA-Z0-9._]", "_", template)


def _fits_image(spec: OrderSpec) -> bool:
    return len(spec.release_image) <= _LONGEST_IMAGE and bool(_IMAGE.fullmatch(spec.release_image))


def _fits_key(spec: OrderSpec) -> bool:
    return len(spec.ssh_public_key) <= _LONGEST_KEY
