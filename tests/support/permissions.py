"""Who may do what, written out by hand. The tests of policy compare the product with these tables.

Nothing here is computed from the product. Whoever changes who may do what changes it here as well.

A cell names roles by letter; `-` is nobody:
O operator, A a tenant's admin, M member, V viewer, R a run of a role, N a caller without a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LETTERS = {"operator": "O", "admin": "A", "member": "M", "viewer": "V", "run": "R", "none": "N"}

# What `policy.TABLE` says, for each kind and verb.
VERBS = """
kind             get    list   watch  create update delete signal
Cluster          OAMV   OAMV   OAMV   OAM    OAM    OAM    O
Project          OAMV   OAMV   OAMV   OA     OA     OA     O
Tenant           OAMV   OAMV   OAMV   O      O      O      O
HostType         OAMV   OAMV   OAMV   O      O      O      O
ClusterVersion   OAMV   OAMV   OAMV   O      O      O      O
ClusterTemplate  OAMV   OAMV   OAMV   O      O      O      O
Hub              O      O      O      O      O      O      O
Backup           OAMV   OAMV   -      OAM    -      OAM    -
Order            O      O      -      -      -      -      -
Leftover         O      O      -      -      -      -      -
TemplateSource   O      O      -      -      -      -      -
RoleRun          R      -      -      -      -      -      -
Event            -      -      OAMV   -      -      -      -
Capabilities     OAMV   -      -      -      -      -      -
"""

MORE_VERBS = """
kind             explain retry credentials issue history story publish check prepare ask
Cluster          OAMV    OAM   OAM         OAMV  OAMV    OAMV  -       -     -       -
Project          -       -     -           -     -       -     -       -     -       -
Tenant           -       -     -           -     -       -     -       -     -       -
HostType         -       -     -           -     -       -     -       -     -       -
ClusterVersion   -       -     -           -     -       -     -       -     -       -
ClusterTemplate  -       -     -           -     -       -     O       -     -       -
Hub              -       -     -           -     -       -     -       O     O       -
Backup           -       -     -           -     -       -     -       -     -       -
Order            -       -     -           -     -       -     -       -     -       -
Leftover         -       -     -           -     -       -     -       -     -       -
TemplateSource   -       -     -           -     -       -     -       -     -       -
RoleRun          -       -     -           -     -       -     -       -     -       R
Event            -       -     -           -     -       -     -       -     -       -
Capabilities     -       -     -           -     -       -     -       -     -       -
"""

# Who is answered by each call that is served, about an object of the caller's own tenant, a shared
# one and a stranger's. `n/a` where whose it is makes no difference to anybody: operators see and
# change everything, and others are turned away before anything is looked up. There are no shared
# backups and projects, and which events a watch shows is the subject of test_watch.py.
CALLS = """
service                           calls                                own     shared  foreign
boatyard.v1.Access                Issue                                OAMV    O       O
boatyard.v1.Backups               List,Get                             OAMV    n/a     O
boatyard.v1.Backups               Create,Delete                        OAM     n/a     O
boatyard.v1.Hubs                  Check,Prepare                        O       n/a     n/a
boatyard.v1.Leftovers             List,Get                             O       n/a     n/a
boatyard.v1.Orders                List,Get                             O       n/a     n/a
boatyard.v1.Orders                Explain,Follow,GetReceipt,History    OAMV    OAMV    O
boatyard.v1.Orders                Retry                                OAM     O       O
boatyard.v1.RoleRuns              Ask,Get                              R       n/a     n/a
boatyard.v1.RunLogs               Read,Watch                           OAMV    OAMV    O
boatyard.v1.TemplateSources       List,Get                             O       n/a     n/a
boatyard.v1.Templates             GetSchema                            OAMV    OAMV    O
boatyard.v1.Templates             Publish                              O       n/a     n/a

osac.public.v1.Capabilities       Get                                  OAMVRN  n/a     n/a
osac.public.v1.ClusterTemplates   List,Get                             OAMV    OAMV    O
osac.public.v1.ClusterTemplates   Create,Update,Delete                 O       O       O
osac.public.v1.ClusterVersions    List,Get                             OAMV    OAMV    O
osac.public.v1.ClusterVersions    Create,Update,Delete                 O       O       O
osac.public.v1.Clusters           List,Get                             OAMV    OAMV    O
osac.public.v1.Clusters           Create,Update,Delete                 OAM     O       O
osac.public.v1.Clusters           GetKubeconfig,GetKubeconfigViaHttp   OAM     O       O
osac.public.v1.Clusters           GetPassword,GetPasswordViaHttp       OAM     O       O
osac.public.v1.Events             Watch                                OAMV    n/a     n/a
osac.public.v1.HostTypes          List,Get                             OAMV    OAMV    O
osac.public.v1.HostTypes          Create,Update,Delete                 O       O       O
osac.public.v1.Projects           List,Get                             OAMV    n/a     O
osac.public.v1.Projects           Create,Update,Delete                 OA      n/a     O
osac.public.v1.Tenants            List,Get                             OAMV    OAMV    O

osac.private.v1.Capabilities      Get                                  O       n/a     n/a
osac.private.v1.ClusterTemplates  List,Get,Create,Update,Delete,Signal O       n/a     n/a
osac.private.v1.ClusterVersions   List,Get,Create,Update,Delete,Signal O       n/a     n/a
osac.private.v1.Clusters          List,Get,Create,Update,Delete,Signal O       n/a     n/a
osac.private.v1.Events            Watch                                O       n/a     n/a
osac.private.v1.HostTypes         List,Get,Create,Update,Delete,Signal O       n/a     n/a
osac.private.v1.Hubs              List,Get,Create,Update,Delete,Signal O       n/a     n/a
osac.private.v1.Projects          List,Get,Create,Update,Delete,Signal O       n/a     n/a
osac.private.v1.Tenants           List,Get,Create,Update,Delete,Signal O       n/a     n/a
"""


@dataclass(frozen=True)
class AnsweredRoles:
    """The roles, by letter, that one call answers; None where whose the object is does not matter."""

    own: str
    shared: str | None
    foreign: str | None

    def of(self, whose: str) -> str | None:
        return {"own": self.own, "shared": self.shared, "foreign": self.foreign}[whose]


def verbs() -> Mapping[tuple[str, str], str]:
    """Letters by kind and verb, from both tables."""
    return _cells(VERBS) | _cells(MORE_VERBS)


def calls() -> Mapping[tuple[str, str], AnsweredRoles]:
    """Who is answered, by service and call."""
    table = {}
    for line in _lines(CALLS)[1:]:
        service, names, *cells = line.split()
        own, shared, foreign = (None if cell == "n/a" else cell for cell in cells)
        assert own is not None
        for name in names.split(","):
            assert (service, name) not in table, f"{service}/{name} is written down twice"
            table[service, name] = AnsweredRoles(own, shared, foreign)
    return table


def _cells(grid: str) -> dict[tuple[str, str], str]:
    (_, *columns), *rows = (line.split() for line in _lines(grid))
    return {
        (kind, verb): cell.strip("-")
        for kind, *cells in rows
        for verb, cell in zip(columns, cells, strict=True)
    }


def _lines(grid: str) -> list[str]:
    return [line for line in grid.splitlines() if line.strip()]
