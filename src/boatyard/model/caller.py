"""Who is calling. Made by the API from a token; rules and policy read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHARED = "shared"
SYSTEM = "system"


class Role(StrEnum):
    """Operator belongs to the provider; the other three to one tenant."""

    OPERATOR = "operator"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


@dataclass(frozen=True)
class Caller:
    """A user acting for one tenant. Operators act for `shared` unless they name a tenant."""

    user: str
    tenant: str
    role: Role

    @property
    def is_operator(self) -> bool:
        return self.role is Role.OPERATOR

    @property
    def visible_tenants(self) -> tuple[str, ...] | None:
        """Whose objects the caller sees: None is everybody's."""
        return None if self.is_operator else (self.tenant, SHARED)
