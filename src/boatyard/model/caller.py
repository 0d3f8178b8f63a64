"""Who is calling. Made by the API from a token; rules and policy read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHARED = "shared"
SYSTEM = "system"


class CallerRole(StrEnum):
    """Operator belongs to the provider; the next three to one tenant; a run to its order and to nobody else."""

    OPERATOR = "operator"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"
    RUN = "run"


@dataclass(frozen=True)
class OrderRun:
    """One attempt of a run of a template's role."""

    order: str  # id
    item: str  # its key within the order
    attempt: int


@dataclass(frozen=True)
class Caller:
    """A user acting for one tenant. Operators act for `shared` unless they name a tenant.

    With `run` it is no user but a run of a role, which knows its own order and nothing else.
    """

    user: str
    tenant: str
    role: CallerRole
    run: OrderRun | None = None

    @property
    def is_operator(self) -> bool:
        return self.role is CallerRole.OPERATOR

    @property
    def visible_tenants(self) -> tuple[str, ...] | None:
        """Whose objects the caller sees: None is everybody's."""
        if self.run is not None:
            return ()
        return None if self.is_operator else (self.tenant, SHARED)
