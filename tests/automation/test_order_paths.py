"""Every way a tenant's words take through an order into a role: they arrive byte by byte, and nothing is executed.

And what is secret stays so on the same ways: in no log, event, answer, row of the database or command line.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml

from boatyard.client.client import Client
from boatyard.client.config import Target
from boatyard.client.kinds import CLUSTER
from boatyard.ledger.embedded_postgres import DATABASE, USER
from boatyard.model.errors import BoatyardError
from boatyard.model.generated.boatyard import Item, ItemState, Order, OrderSpec
from boatyard.model.generated.osac import (
    Cluster,
    ClusterSpec,
    ClusterState,
    ClusterTemplateReference,
    Metadata,
)
from boatyard.resources.orders.role_context import build_role_context
from boatyard.roles.form import Option
from boatyard.roles.parameter_values import to_typed_value
from boatyard.wiring.template_folders import OWN_ROLES_FOLDER
from tests.automation.test_injection import HOSTILE as ALL
from tests.support.distributed import ANY_PORT, INSTANT, address
from tests.support.processes import BOATYARD, Program, run
from tests.support.real_clusters.up_command import until
from tests.support.role_runs import RoleEnvironment, again, ended, processes_with
from tests.support.roles import files, write

pytestmark = pytest.mark.timeout(400)

RAN = "/run/boatyard/ran"
HOSTILE = [text for text in ALL if "\x00" not in text]  # PostgreSQL keeps no NUL
SECRET = 'hunter2 "{{ 7 * 7 }}" pässwörd'
SPEC = {
    "text": {"type": "str"},
    "texts": {"type": "list", "elements": "str"},
    "nested": {"type": "dict"},
    "password": {"type": "str", "no_log": True},
}
TELL = [
    {
        "name": "{{ text }}",
        "ansible.builtin.set_fact": {
            "copied": {
                "text": "{{ text }}",
                "texts": "{{ texts }}",
                "nested": "{{ nested }}",
                "order": "{{ boatyard_order }}",
            }
        },
    },
    {"name": "loop", "ansible.builtin.debug": {"msg": "{{ item }}"}, "loop": "{{ texts[:9] }}"},
    {"name": "secret", "ansible.builtin.debug": {"msg": "{{ password }}"}},
    {"name": "secret in a list", "ansible.builtin.debug": {"var": "boatyard_parameters"}},
    {
        "name": "report",
        "boatyard.service.facts": {
            "arrived": "{{ copied | to_json | b64encode }}",
            "secret": "{{ password }}",
            "length": "{{ password | length }}",
            "ran": "{{ '" + RAN + "' is exists }}",
        },
    },
]
FAIL = [{"name": "give up", "ansible.builtin.fail": {"msg": "with {{ password }}"}}]
UNMARKED = (
    "import boatyard.automation.drivers.local.values as values; values.UNSAFE_TAG = ''; "
    "from boatyard.app.main import main; raise SystemExit(main())"
)


class Place:
    """One `boatyard up` on the twin with our roles in its folder."""

    def __init__(self, home: Path, command: tuple[str, ...] = BOATYARD) -> None:
        self.home, self.data = home, home / "data"
        for name, tasks in {"teller": TELL, "failing": FAIL}.items():
            made = {
                "meta/template.yaml": "node_sets: {compute: {host_type: bm-small, size: 1}}",
                "meta/argument_specs.yml": json.dumps(
                    {"argument_specs": {"main": {"options": SPEC}}}
                ),
                "tasks/post_install.yaml": yaml.safe_dump(tasks),
            }
            write(self.data / OWN_ROLES_FOLDER / name, files(made))
        self.up = Program(
            "up", "--data", str(self.data), *ANY_PORT, home=home, environ=INSTANT, command=command
        )
        self.address = address(self.up.ready())
        until(lambda: "failing" in self.typed("template", "list"), "both roles are offered")

    def client(self) -> Client:
        token = (self.data / "operator.token").read_text()
        return Client(Target(address=self.address, token=token))

    def typed(self, *words: str) -> str:
        done = run(*words, home=self.home)
        return done.stdout + done.stderr

    async def order(self, template: str, values: Mapping[str, Any], **metadata: Any) -> str:
        """Its id, once it has come to an end."""
        options = {name: Option(type=one["type"]) for name, one in SPEC.items()}
        parameters = {name: to_typed_value(options[name], value) for name, value in values.items()}
        new = Cluster(
            metadata=Metadata(**{"name": template, "tenant": "acme", **metadata}),
            spec=ClusterSpec(
                template=ClusterTemplateReference(id=template), template_parameters=parameters
            ),
        )
        async with self.client() as client, asyncio.timeout(240):
            made = (await client.create_cluster(new)).id
            while True:
                found = (await client.get(CLUSTER, made)).document
                if found.status.state in (ClusterState.READY, ClusterState.FAILED):
                    return made
                await asyncio.sleep(0.2)

    def facts(self) -> Mapping[str, str]:
        """Of the one order with facts of a role."""
        orders = json.loads(self.typed("get", "orders", "-o", "json"))
        (found,) = [one for one in orders if "role.ran" in one["status"]["facts"]]
        facts: Mapping[str, str] = found["status"]["facts"]
        return facts


@pytest.fixture
async def home() -> AsyncIterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="by-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


VALUES: dict[str, Any] = {
    "text": HOSTILE[0],
    "texts": HOSTILE,
    "nested": {text or "empty": {text or "empty": [text, {"a": text}]} for text in HOSTILE},
    "password": SECRET,
}
# Names and keys are narrow: nothing of the kind is taken.
REFUSED: list[dict[str, Any]] = [
    {"name": HOSTILE[0]},
    {"labels": {"app": HOSTILE[0]}},
    {"labels": {HOSTILE[0]: "x"}},
    {"annotations": {HOSTILE[0]: "x"}},
]
FREE: dict[str, Any] = {
    "display_name": HOSTILE[0][:60],
    "annotations": {f"example.com/a{number}": text for number, text in enumerate(HOSTILE)},
}


async def test_words_arrive_as_they_were_sent_and_secrets_are_seen_nowhere(home: Path) -> None:
    place = Place(home)
    with place.up:
        made = await place.order("teller", VALUES, labels={"app": "x"}, **FREE)
        await place.order("failing", {**VALUES, "text": "x"})
        for metadata in REFUSED:
            with pytest.raises(BoatyardError):
                await place.order("teller", VALUES, **metadata)

        facts = place.facts()
        assert facts["role.ran"] == "false"
        assert facts["role.length"] == str(len(SECRET))
        arrived = json.loads(base64.b64decode(facts["role.arrived"]))
        assert arrived["text"] == VALUES["text"]
        assert arrived["texts"] == VALUES["texts"]
        assert arrived["nested"] == VALUES["nested"]
        assert arrived["order"]["display_name"] == FREE["display_name"]
        assert arrived["order"]["annotations"].items() >= FREE["annotations"].items()
        assert arrived["order"]["labels"] == {"app": "x"}

        shown = [
            place.typed("explain", "cluster", "teller"),
            place.typed("explain", "cluster", "failing"),
            place.typed("logs", "cluster", "failing"),
            place.typed("logs", "cluster", "teller"),
            place.typed("get", "clusters", "-o", "yaml"),
            place.typed("get", "orders", "-o", "yaml"),
            place.typed("events", "cluster", "failing"),
            str(processes_with(str(home))),
            *[text async for text in rows(place.data)],
        ]
        assert "give up" in shown[1], "it has failed in its own words"
        assert made in "".join(shown), "the rows of the database were read"
        assert place.up.end() == 0
    for text in (*shown, *kept_files(home)):
        assert "hunter2" not in text
        assert "pässwörd" not in text
        assert base64.b64encode(b"hunter2").decode()[:8] not in text


def kept_files(home: Path) -> list[str]:
    """All that is on disk, apart from the database's own files."""
    found = [path for path in home.rglob("*") if path.is_file() and "postgres" not in path.parts]
    return [path.read_bytes().decode(errors="replace") for path in found]


async def rows(data: Path) -> AsyncIterator[str]:
    """Every row of every table, as text; bytes as they are, too."""
    connection = await asyncpg.connect(host=str(data / "postgres"), user=USER, database=DATABASE)
    try:
        names = await connection.fetch(
            "select format('%I.%I', schemaname, tablename) as name from pg_tables "
            "where schemaname not in ('pg_catalog', 'information_schema')"
        )
        for table in names:
            for row in await connection.fetch(f"select * from {table['name']}"):
                values = [
                    value.decode(errors="replace") if isinstance(value, bytes) else str(value)
                    for value in row.values()
                ]
                yield " ".join(values)
    finally:
        await connection.close()


async def test_without_the_mark_a_tenants_words_would_be_executed(home: Path) -> None:
    place = Place(home, (sys.executable, "-c", UNMARKED))
    with place.up:
        await place.order("teller", {**VALUES, "texts": ["x"], "nested": {}, "text": HOSTILE[0]})
        assert place.facts()["role.ran"] == "true"


async def test_words_of_the_data_centre_and_of_earlier_parts_arrive_too(
    role_environment: RoleEnvironment,
) -> None:
    """Names of hosts, addresses and facts come from others: an inventory may say anything, and so may a role."""
    items = {
        key: Item(key=key, kind=kind, slot="compute-0", state=ItemState.PRESENT, facts=facts)
        for key, kind, facts in (
            ("host/compute-0", "host", {"host": HOSTILE[0]}),
            ("agent/compute-0", "agent", {"address": HOSTILE[1]}),
            ("node/compute-0", "node", {}),
            ("api-name", "api-name", {"name": HOSTILE[2]}),
            ("pre_install", "pre_install", {"role.said": HOSTILE[0]}),
        )
    }
    order = build_role_context(Order(id="order-1", spec=OrderSpec(cluster_name="web")), items)
    look = "{{ boatyard_order.nodes[0].host }} {{ boatyard_order.facts.said }}"
    wanted = role_environment.role(
        "reader",
        post_install=[
            {"name": "use", "ansible.builtin.debug": {"msg": look}},
            {
                "name": "report",
                "boatyard.service.facts": {
                    "arrived": "{{ boatyard_order | to_json | b64encode }}",
                    "ran": "{{ '" + RAN + "' is exists }}",
                },
            },
        ],
    )

    done = await ended(
        role_environment.driver(), "order-1/post_install", again(wanted, order=order)
    )

    assert done.facts["ran"] == "false"
    arrived = json.loads(base64.b64decode(done.facts["arrived"]))
    assert arrived == order
    assert arrived["nodes"][0]["host"] == HOSTILE[0]
    assert arrived["facts"] == {"said": HOSTILE[0]}
