"""The processes of one control plane and their command lines and configuration. Pure functions of the record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boatyard.platforms.drivers.local.allocation import LOOPBACK
from boatyard.platforms.drivers.local.certificates import ADMIN_USER
from boatyard.platforms.drivers.local.records import ClusterRecord

WORKING_DIRECTORY = "/proc/self/cwd"  # works even when the user may not enter the directories above
BALANCER = "balancer"
ADMISSION_FILE = "admission.json"
API_PORT_IN_SEGMENT = 6443
_ETCD_QUOTA_BYTES = 2 * 1024**3  # bytes an etcd may store
_AUDIT_LOG_FLAGS = ["--audit-log-maxsize=20", "--audit-log-maxbackup=2", "--audit-log-maxage=30"]


@dataclass(frozen=True)
class ControlPlaneComponent:
    """One process. `program` is an asset, or BALANCER for our own balancer."""

    name: str  # "etcd-0"
    program: str
    arguments: tuple[str, ...]
    environ: Mapping[str, str]

    @property
    def kind(self) -> str:
        return self.name.rpartition("-")[0] or self.name


def port_names(members: int) -> Sequence[str]:
    """Returns the names of the ports a cluster needs. `api` is the one that clients use."""
    if members == 1:
        return ("api",)
    names = ["api"]
    for number in range(members):
        names += [f"api-{number}", f"peer-{number}"]
    return names


def find_listener(record: ClusterRecord, port: str) -> str:
    """Returns the name of the component that listens on this port."""
    kind, _, number = port.partition("-")
    if kind == "peer":
        return f"etcd-{number}"
    if number:
        return f"kube-apiserver-{number}"
    return "kube-apiserver-0" if not balancers(record) else "balancer"


def server_url(record: ClusterRecord) -> str:
    return f"https://{LOOPBACK}:{record.ports['api']}"


def internal_url(record: ClusterRecord) -> str:
    """Returns the API's URL for the cluster's own components: those in a segment cannot reach our loopback."""
    if not record.real:
        return server_url(record)
    address, port = api_addresses(record)[0]
    return f"https://{address}:{port}"


def etcds(record: ClusterRecord) -> list[ControlPlaneComponent]:
    return [_etcd(record, number) for number in range(record.members)]


def api_servers(record: ClusterRecord) -> list[ControlPlaneComponent]:
    return [_api_server(record, number) for number in range(record.members)]


def balancers(record: ClusterRecord) -> list[ControlPlaneComponent]:
    """Returns the balancer that is needed in front of several API servers, or of one in its own network namespace."""
    upstreams = [f"{address}:{port}" for address, port in api_addresses(record)]
    if len(upstreams) == 1 and not record.real:
        return []
    arguments = [f"--listen={LOOPBACK}:{record.ports['api']}"]
    arguments += [f"--upstream={upstream}" for upstream in upstreams]
    if record.real:
        arguments.append(f"--netns={segment_namespace(record)}")
    if record.user is not None:
        arguments.append(f"--user={record.user}")
    return [ControlPlaneComponent("balancer", BALANCER, tuple(arguments), {})]


def controllers(record: ClusterRecord) -> list[ControlPlaneComponent]:
    """Returns the components that are started once the API answers: without it a controller manager exits."""
    processes = []
    for number in range(record.members):
        processes += [_controller_manager(record, number), _scheduler(record, number)]
    return processes


def segment_namespace(record: ClusterRecord) -> str:
    """Returns the name of the network namespace of a cluster with real nodes."""
    return f"by-{record.slug}"


def gateway(record: ClusterRecord) -> str:
    """Returns the API's address on the segment."""
    return record.wanted.gateway


def api_addresses(record: ClusterRecord) -> list[tuple[str, int]]:
    if record.real:
        return [(gateway(record), API_PORT_IN_SEGMENT + n) for n in range(record.members)]
    if record.members == 1:
        return [(LOOPBACK, record.ports["api"])]
    return [(LOOPBACK, record.ports[f"api-{number}"]) for number in range(record.members)]


def etcd_socket(number: int) -> str:
    return f"var/etcd-{number}.sock"


def member_name(number: int) -> str:
    return f"m{number}"


def peer_url(record: ClusterRecord, number: int) -> str:
    if record.members == 1:
        return "http://localhost:2380"  # unused: a single member has no peers
    return f"https://{LOOPBACK}:{record.ports[f'peer-{number}']}"


def initial_cluster(record: ClusterRecord) -> str:
    pairs = (f"{member_name(n)}={peer_url(record, n)}" for n in range(record.members))
    return ",".join(pairs)


def _etcd(record: ClusterRecord, number: int) -> ControlPlaneComponent:
    arguments = [
        f"--name={member_name(number)}",
        f"--data-dir={WORKING_DIRECTORY}/var/etcd-{number}",
        f"--listen-client-urls=unix://{WORKING_DIRECTORY}/{etcd_socket(number)}",
        "--advertise-client-urls=http://localhost:2379",
        f"--initial-advertise-peer-urls={peer_url(record, number)}",
        f"--initial-cluster={initial_cluster(record)}",
        f"--initial-cluster-token={record.slug}",
        f"--quota-backend-bytes={_ETCD_QUOTA_BYTES}",
        "--watch-progress-notify-interval=5s",  # so that watches of quiet kinds have bookmarks
        "--log-level=warn",
    ]
    if record.members == 1:
        arguments.append(f"--listen-peer-urls=unix://{WORKING_DIRECTORY}/var/peer-{number}.sock")
    else:
        arguments += [
            f"--listen-peer-urls={peer_url(record, number)}",
            "--peer-client-cert-auth=true",
            f"--peer-trusted-ca-file={WORKING_DIRECTORY}/pki/etcd-ca.crt",
            f"--peer-cert-file={WORKING_DIRECTORY}/pki/etcd-peer.crt",
            f"--peer-key-file={WORKING_DIRECTORY}/pki/etcd-peer.key",
        ]
    return ControlPlaneComponent(f"etcd-{number}", "etcd", tuple(arguments), {})


def _api_server(record: ClusterRecord, number: int) -> ControlPlaneComponent:
    desired = record.wanted
    address, port = api_addresses(record)[number]
    sockets = ",".join(
        f"unix://{WORKING_DIRECTORY}/{etcd_socket(n)}" for n in range(record.members)
    )
    arguments = [
        f"--etcd-servers={sockets}",
        f"--bind-address={address}",
        f"--advertise-address={address}",
        f"--secure-port={port}",
        # A loopback address is refused as an endpoint; in a segment the address is a real one.
        f"--endpoint-reconciler-type={'lease' if record.real else 'none'}",
        f"--service-cluster-ip-range={desired.service_cidr}",
        "--authorization-mode=Node,RBAC,ABAC",
        f"--authorization-policy-file={WORKING_DIRECTORY}/administrator.jsonl",
        "--anonymous-auth=false",
        "--allow-privileged=true",
        "--enable-admission-plugins=NodeRestriction",
        *(
            [f"--admission-control-config-file={WORKING_DIRECTORY}/{ADMISSION_FILE}"]
            if record.real
            else []
        ),
        "--profiling=false",
        f"--client-ca-file={WORKING_DIRECTORY}/pki/ca.crt",
        f"--tls-cert-file={WORKING_DIRECTORY}/pki/apiserver.crt",
        f"--tls-private-key-file={WORKING_DIRECTORY}/pki/apiserver.key",
        f"--kubelet-certificate-authority={WORKING_DIRECTORY}/pki/ca.crt",
        f"--kubelet-client-certificate={WORKING_DIRECTORY}/pki/apiserver-kubelet.crt",
        f"--kubelet-client-key={WORKING_DIRECTORY}/pki/apiserver-kubelet.key",
        # A simulated node has no kubelet and no ExternalIP: requests for logs fail at once, without a connection.
        f"--kubelet-preferred-address-types={'InternalIP' if record.real else 'ExternalIP'}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={WORKING_DIRECTORY}/pki/sa.pub",
        f"--service-account-signing-key-file={WORKING_DIRECTORY}/pki/sa.key",
        f"--requestheader-client-ca-file={WORKING_DIRECTORY}/pki/front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={WORKING_DIRECTORY}/pki/front-proxy-client.crt",
        f"--proxy-client-key-file={WORKING_DIRECTORY}/pki/front-proxy-client.key",
        f"--encryption-provider-config={WORKING_DIRECTORY}/encryption.json",
        f"--audit-policy-file={WORKING_DIRECTORY}/audit-policy.json",
        f"--audit-log-path={WORKING_DIRECTORY}/var/audit-{number}.log",
        *_AUDIT_LOG_FLAGS,
        # Without it, open watches delay its end for as long as somebody watches.
        "--shutdown-watch-termination-grace-period=1s",
        "--v=0",
    ]
    return ControlPlaneComponent(f"kube-apiserver-{number}", "kube-apiserver", tuple(arguments), {})


def _controller_manager(record: ClusterRecord, number: int) -> ControlPlaneComponent:
    arguments = [
        f"--kubeconfig={WORKING_DIRECTORY}/controller-manager.kubeconfig",
        f"--root-ca-file={WORKING_DIRECTORY}/pki/ca.crt",
        f"--service-account-private-key-file={WORKING_DIRECTORY}/pki/sa.key",
        f"--cluster-signing-cert-file={WORKING_DIRECTORY}/pki/ca.crt",
        f"--cluster-signing-key-file={WORKING_DIRECTORY}/pki/ca.key",
        "--use-service-account-credentials=true",
        "--allocate-node-cidrs=false",
        # With the default of 20 a new cluster has its service accounts four seconds later.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *_leader_election_flags(record),
    ]
    return ControlPlaneComponent(
        f"kube-controller-manager-{number}", "kube-controller-manager", tuple(arguments), {}
    )


def _scheduler(record: ClusterRecord, number: int) -> ControlPlaneComponent:
    arguments = [
        f"--kubeconfig={WORKING_DIRECTORY}/scheduler.kubeconfig",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *_leader_election_flags(record),
    ]
    return ControlPlaneComponent(f"kube-scheduler-{number}", "kube-scheduler", tuple(arguments), {})


def _leader_election_flags(record: ClusterRecord) -> list[str]:
    leader = "true" if record.members > 1 else "false"
    return [f"--leader-elect={leader}", "--secure-port=0", "--profiling=false"]


def encryption_config(record: ClusterRecord) -> bytes:
    """Renders the encryption config: writes use the newest key; all keys, and no encryption, can be read."""
    keys = [
        {"name": f"key-{len(record.encryption_keys) - place}", "secret": secret}
        for place, secret in enumerate(record.encryption_keys)
    ]
    return json.dumps(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [
                {
                    "resources": ["secrets"],
                    "providers": [{"secretbox": {"keys": keys}}, {"identity": {}}],
                }
            ],
        }
    ).encode()


def administrator_policy() -> bytes:
    """Renders a policy that lets the tenant's administrator do everything from the first answer on.

    The API server creates roles and bindings only in its first seconds; the administrator need not wait for
    them, and is not locked out by deleting the wrong binding.
    """
    everything = {"namespace": "*", "apiGroup": "*", "resource": "*", "nonResourcePath": "*"}
    policy = {
        "apiVersion": "abac.authorization.kubernetes.io/v1beta1",
        "kind": "Policy",
        "spec": {"user": ADMIN_USER, **everything},
    }
    return json.dumps(policy).encode() + b"\n"


def admission_config() -> bytes:
    """Renders an admission config: pods on real nodes are unprivileged, unless their namespace is labelled otherwise.

    It prevents accidents; it does not stop the cluster's administrator, who may set the label.
    """
    level = {"enforce": "baseline", "enforce-version": "latest"}
    pods = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": level,
        "exemptions": {"namespaces": ["kube-system"]},
    }
    return json.dumps(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "PodSecurity", "configuration": pods}],
        }
    ).encode()


def audit_policy() -> bytes:
    """Renders an audit policy that logs who did what, never contents, and no routine reads by components."""
    chatter = ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"]
    return json.dumps(
        {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [
                {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]},
                {"level": "None", "users": chatter, "verbs": ["get", "list", "watch"]},
                {
                    "level": "None",
                    "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"],
                    "verbs": ["get", "list", "watch"],
                },
                {
                    "level": "None",
                    "resources": [
                        {"group": "coordination.k8s.io", "resources": ["leases"]},
                        {"group": "", "resources": ["events"]},
                        {"group": "events.k8s.io", "resources": ["events"]},
                    ],
                },
                {"level": "Metadata"},
            ],
        }
    ).encode()
