"""What tenants see, what a field may do. Made by tools/generate.py; not edited.

A path is dotted; `*` stands for every key of a map or every element of a list. Kinds are named
by their message: Cluster, Hub, Order.
"""

# Rules are quoted in one piece.
# ruff: noqa: E501

from collections.abc import Mapping
from typing import Any

# Message to the fields tenants see.
PUBLIC_FIELDS: Mapping[str, tuple[str, ...]] = {
    "AuthnCapabilities": ("trusted_token_issuers",),
    "Metadata": (
        "creation_timestamp",
        "deletion_timestamp",
        "creator",
        "tenant",
        "name",
        "labels",
        "annotations",
        "version",
        "project",
        "display_name",
        "description",
        "generation",
    ),
    "TenantSpec": ("domains",),
    "BreakGlassCredentials": ("username", "password"),
    "TenantCondition": (),
    "TenantStatus": (),
    "Tenant": ("id", "metadata", "spec"),
    "ProjectSpec": ("title", "description"),
    "ProjectCondition": (),
    "ProjectStatus": ("state", "message"),
    "Project": ("id", "metadata", "spec", "status"),
    "NetworkInterface": ("name", "role", "description"),
    "HostType": ("id", "metadata", "title", "description", "interfaces", "resources"),
    "ClusterVersionDeprecation": ("deprecation_timestamp", "obsolescence_timestamp"),
    "ClusterVersionSpec": ("enabled", "is_default", "state", "deprecation", "version"),
    "ClusterVersionStatus": (),
    "ClusterVersion": ("id", "metadata", "spec", "status"),
    "ClusterTemplateParameterDefinition": (
        "name",
        "title",
        "description",
        "required",
        "type",
        "default",
        "no_log",
    ),
    "HostTypeReference": ("id", "name", "project", "shared"),
    "ClusterTemplateNodeSet": ("host_type", "size"),
    "ClusterNetwork": ("pod_cidr", "service_cidr"),
    "ClusterVersionReference": ("id", "name", "project", "shared"),
    "SecretLocalReference": ("id", "name"),
    "ClusterTemplateSpecDefaults": ("ssh_public_key", "network", "version", "pull_secret_secret"),
    "ClusterTemplate": (
        "id",
        "metadata",
        "title",
        "description",
        "parameters",
        "node_sets",
        "spec_defaults",
        "digest",
        "allowed_host_types",
        "version_from",
        "version_below",
        "phases",
        "withdrawn",
    ),
    "HubSpec": (),
    "HubCondition": (),
    "HubStatus": (),
    "Hub": (),
    "ClusterTemplateReference": ("id", "name", "project", "shared"),
    "ClusterNodeSet": ("host_type", "size"),
    "ClusterCatalogItemReference": ("id", "name", "project", "shared"),
    "SubnetLocalReference": ("id", "name"),
    "SecurityGroupLocalReference": ("id", "name"),
    "ClusterNetworkAttachment": ("subnet", "security_groups"),
    "ClusterRestore": ("backup", "request"),
    "ClusterSpec": (
        "template",
        "template_parameters",
        "node_sets",
        "pull_secret",
        "ssh_public_key",
        "version",
        "network",
        "catalog_item",
        "network_attachment",
        "auto_external_ip_attachment",
        "pull_secret_secret",
        "zone",
        "hub_labels",
        "rest",
        "restore",
        "template_digest",
        "template_phases",
        "secret_parameters",
    ),
    "ClusterCondition": ("type", "status", "last_transition_time", "reason", "message"),
    "PlacementCandidate": (),
    "Placement": (),
    "ClusterStatus": (
        "state",
        "conditions",
        "api_url",
        "console_url",
        "node_sets",
        "api_endpoint",
        "ingress_endpoint",
        "state_transition_time",
        "ready_nodes",
        "version",
        "rest",
        "restored",
    ),
    "Cluster": ("id", "metadata", "spec", "status"),
    "Event": (
        "id",
        "type",
        "cluster",
        "cluster_template",
        "host_type",
        "compute_instance_template",
        "compute_instance",
        "role",
        "role_binding",
        "project",
        "instance_type",
        "bare_metal_instance",
        "tenant",
        "cluster_version",
        "secret",
        "disk_image",
        "at",
        "reason",
        "message",
        "bookmark",
    ),
}

# Message to the fields only operators see.
PRIVATE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "AuthnCapabilities": (),
    "Metadata": ("finalizers",),
    "TenantSpec": (),
    "BreakGlassCredentials": (),
    "TenantCondition": ("type", "status", "last_transition_time", "reason", "message"),
    "TenantStatus": (
        "break_glass_credentials",
        "state",
        "message",
        "idp_tenant_name",
        "break_glass_user_id",
        "conditions",
    ),
    "Tenant": ("status",),
    "ProjectSpec": (),
    "ProjectCondition": ("type", "status", "reason", "message"),
    "ProjectStatus": ("conditions",),
    "Project": (),
    "NetworkInterface": (),
    "HostType": (),
    "ClusterVersionDeprecation": (),
    "ClusterVersionSpec": ("image",),
    "ClusterVersionStatus": (),
    "ClusterVersion": (),
    "ClusterTemplateParameterDefinition": (),
    "HostTypeReference": (),
    "ClusterTemplateNodeSet": (),
    "ClusterNetwork": (),
    "ClusterVersionReference": (),
    "SecretLocalReference": (),
    "ClusterTemplateSpecDefaults": ("pull_secret",),
    "ClusterTemplate": ("hub_labels", "platform_settings", "form"),
    "HubSpec": (
        "kubeconfig",
        "namespace",
        "zone",
        "labels",
        "drivers",
        "capacity",
        "cordoned",
        "settings",
        "templates",
    ),
    "HubCondition": ("type", "status", "last_transition_time", "reason", "message", "remedy"),
    "HubStatus": (
        "state",
        "message",
        "last_seen",
        "used",
        "observed_generation",
        "conditions",
        "version",
        "capacity",
        "cluster_uid",
    ),
    "Hub": ("id", "metadata", "spec", "status"),
    "ClusterTemplateReference": (),
    "ClusterNodeSet": ("fabric_interface",),
    "ClusterCatalogItemReference": (),
    "SubnetLocalReference": (),
    "SecurityGroupLocalReference": (),
    "ClusterNetworkAttachment": (),
    "ClusterRestore": (),
    "ClusterSpec": (),
    "ClusterCondition": (),
    "PlacementCandidate": ("hub", "fits", "score", "reason"),
    "Placement": ("hub", "decided_at", "reason", "candidates"),
    "ClusterStatus": ("hub", "placement", "observed_generation"),
    "Cluster": (),
    "Event": (
        "hub",
        "network_class",
        "subnet",
        "virtual_network",
        "security_group",
        "user",
        "cluster_catalog_item",
        "compute_instance_catalog_item",
        "bare_metal_instance_template",
        "bare_metal_instance_catalog_item",
        "storage_backend",
        "identity_provider",
        "project_membership",
        "external_ip_pool",
        "external_ip",
        "external_ip_attachment",
        "nat_gateway",
        "storage_tier",
        "volume",
    ),
}

# Kind to paths that are never shown or logged.
SENSITIVE: Mapping[str, tuple[str, ...]] = {
    "Tenant": ("status.break_glass_credentials.password",),
    "Project": (),
    "HostType": (),
    "ClusterVersion": (),
    "ClusterTemplate": ("spec_defaults.pull_secret",),
    "Hub": ("spec.kubeconfig",),
    "Cluster": ("spec.pull_secret", "spec.secret_parameters"),
    "Event": (
        "cluster.spec.pull_secret",
        "cluster.spec.secret_parameters",
        "cluster_template.spec_defaults.pull_secret",
        "hub.spec.kubeconfig",
        "tenant.status.break_glass_credentials.password",
    ),
    "Order": (
        "spec.pull_secret",
        "spec.secret_values",
        "status.credentials.kubeconfig",
        "status.credentials.password",
    ),
    "Leftover": (),
    "Backup": (),
    "TemplateSource": (),
}

# Kind to paths of references and the kind each refers to.
REFERENCES: Mapping[str, Mapping[str, str]] = {
    "Tenant": {},
    "Project": {},
    "HostType": {},
    "ClusterVersion": {},
    "ClusterTemplate": {
        "node_sets.*.host_type": "HostType",
        "spec_defaults.version": "ClusterVersion",
        "spec_defaults.pull_secret_secret": "Secret",
    },
    "Hub": {},
    "Cluster": {
        "spec.template": "ClusterTemplate",
        "spec.node_sets.*.host_type": "HostType",
        "spec.version": "ClusterVersion",
        "spec.catalog_item": "ClusterCatalogItem",
        "spec.network_attachment.subnet": "Subnet",
        "spec.network_attachment.security_groups.*": "SecurityGroup",
        "spec.pull_secret_secret": "Secret",
        "status.node_sets.*.host_type": "HostType",
    },
    "Order": {},
    "Leftover": {},
    "Backup": {},
    "TemplateSource": {},
}

# Kind to paths that stay as they were created.
IMMUTABLE: Mapping[str, tuple[str, ...]] = {
    "Tenant": (),
    "Project": (),
    "HostType": (),
    "ClusterVersion": ("spec.image", "spec.version"),
    "ClusterTemplate": (),
    "Hub": (),
    "Cluster": ("spec.auto_external_ip_attachment",),
    "Order": (),
    "Leftover": (),
    "Backup": (),
    "TemplateSource": (),
}

# Kind to paths that only the service writes.
OUTPUT_ONLY: Mapping[str, tuple[str, ...]] = {
    "Tenant": (),
    "Project": (),
    "HostType": (),
    "ClusterVersion": (
        "spec.deprecation.deprecation_timestamp",
        "spec.deprecation.obsolescence_timestamp",
    ),
    "ClusterTemplate": ("digest", "form", "phases"),
    "Hub": ("status.cluster_uid",),
    "Cluster": ("spec.template_digest", "spec.template_phases"),
    "Order": (),
    "Leftover": (),
    "Backup": (),
    "TemplateSource": (),
}

# Kind to paths that must be given.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "Tenant": (),
    "Project": (),
    "HostType": (),
    "ClusterVersion": ("spec.image", "spec.version"),
    "ClusterTemplate": (),
    "Hub": (),
    "Cluster": (),
    "Order": (),
    "Leftover": (),
    "Backup": (),
    "TemplateSource": (),
}

# Kind to paths and their validation rules, in protovalidate's words; the path "" is the object itself.
RULES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "Tenant": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
        "spec.domains": {
            "repeated": {
                "unique": True,
                "items": {
                    "string": {"min_len": 1, "max_len": 253},
                    "cel": [
                        {
                            "id": "not_ip_address",
                            "message": "must be a DNS hostname, not an IP address",
                            "expression": "!this.matches('^[0-9.]+$') && !this.matches('^[0-9a-f:]+$')",
                        },
                        {
                            "id": "min_two_labels",
                            "message": "must have at least two labels (e.g., 'example.com')",
                            "expression": "this.contains('.')",
                        },
                        {
                            "id": "valid_dns_labels",
                            "message": "all labels must be valid DNS labels (lowercase a-z/0-9/hyphen, max 63 chars, alphanumeric start/end)",
                            "expression": "this.split('.').all(label, label.size() > 0 && label.size() <= 63 && label.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'))",
                        },
                    ],
                },
            }
        },
    },
    "Project": {
        "": {
            "cel": {
                "id": "project_name_segments",
                "message": "project name must be dot-separated DNS labels (each segment: max 63 chars, lowercase a-z/0-9/hyphen, alphanumeric start/end)",
                "expression": "this.metadata.name.size() > 0 && this.metadata.name.split('.').all(segment, segment.size() > 0 && segment.size() <= 63 && segment.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'))",
            }
        }
    },
    "HostType": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
    "ClusterVersion": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
        "spec.image": {"string": {"min_len": 1, "max_len": 512}},
        "spec.version": {"string": {"min_len": 1, "max_len": 256}},
    },
    "ClusterTemplate": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
    "Hub": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
    "Cluster": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
    "Order": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
    "Leftover": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
    "Backup": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
    "TemplateSource": {
        "metadata.name": {
            "string": {
                "min_len": 1,
                "max_len": 63,
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            }
        },
        "metadata.labels": {
            "map": {
                "keys": {"string": {"min_len": 1, "max_len": 316}},
                "values": {"string": {"max_len": 63}},
            }
        },
        "metadata.annotations": {"map": {"keys": {"string": {"min_len": 1, "max_len": 316}}}},
        "metadata.display_name": {"string": {"max_len": 63}},
        "metadata.description": {"string": {"max_len": 256}},
    },
}
