"""Filters without a database: what they mean, what is refused and where, and that no text becomes SQL."""

from __future__ import annotations

import re

import cel
import msgspec
import pytest
from hypothesis import given

from boatyard.ledger.filters.compile import compile_filter, compile_order
from boatyard.ledger.filters.conditions import Parameters
from boatyard.model import wire
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    Event,
    EventType,
    Metadata,
)
from tests.support.filters import NOW, as_cel, grown, leaves, plain_leaves, population

PRIVATE = wire.message("osac.private.v1.Cluster").DESCRIPTOR
PUBLIC = wire.message("osac.public.v1.Cluster").DESCRIPTOR
EVENT = wire.message("osac.private.v1.Event").DESCRIPTOR

CLUSTERS = population(30)
CONTEXTS = [cel.Context({"this": as_cel(cluster)}) for cluster in CLUSTERS]

BOSTON = Cluster(
    id="1",
    metadata=Metadata(
        name="boston", tenant="acme", labels={"env": "dev", "empty": ""}, finalizers=("f",),
        creation_timestamp=NOW, version=3,
    ),
    spec=ClusterSpec(node_sets={"w": ClusterNodeSet(size=3), "idle": ClusterNodeSet()}),
    status=ClusterStatus(state=ClusterState.READY, hub="h1"),
)  # fmt: skip


@pytest.mark.parametrize(
    "text, expected",
    [
        # what the real command line sends
        ('this.id == "1" || this.metadata.name == "1"', True),
        ('this.id in ["x"] || this.metadata.name in ["boston"]', True),
        ('this.metadata.tenant == "acme" && (this.id == "2")', False),
        ('(this.id == "1" || this.metadata.name == "x") && this.status.state > 0', True),
        # enums by number, by name and by short name
        ("this.status.state == 2", True),
        ("this.status.state == CLUSTER_STATE_READY", True),
        ('this.status.state in ["READY", "FAILED"]', True),
        ("this.status.state >= 3", False),
        # what is not stored has its default
        ('this.status.api_url == ""', True),
        ('this.status.api_url != "x"', True),
        ("this.metadata.generation == 0", True),
        ("this.spec.auto_external_ip_attachment == false", True),
        ("!this.spec.auto_external_ip_attachment", True),
        # maps: a missing entry is equal to nothing
        ('this.metadata.labels["env"] == "dev"', True),
        ('this.metadata.labels.env == "dev"', True),
        ('this.metadata.labels["no"] == ""', False),
        ('this.metadata.labels["no"] != "dev"', True),
        ('this.metadata.labels["empty"] == ""', True),
        ('this.metadata.labels["no"].startsWith("")', False),
        ('"env" in this.metadata.labels', True),
        ('"f" in this.metadata.finalizers', True),
        ('this.spec.node_sets["w"].size >= 3', True),
        ('this.spec.node_sets["idle"].size == 0', True),
        ('this.spec.node_sets["no"].size == 0', False),
        ('this.spec.node_sets["no"].size != 0', True),
        # presence
        ("has(this.metadata.labels)", True),
        ("has(this.metadata.annotations)", False),
        ("has(this.metadata.labels.env)", True),
        ("has(this.spec.node_sets.idle)", True),
        ("has(this.spec.ssh_public_key)", False),
        ("has(this.status)", True),
        ("this.metadata.deletion_timestamp == null", True),
        ("this.metadata.creation_timestamp != null", True),
        # time
        ('this.metadata.creation_timestamp >= timestamp("2026-01-01T00:00:00Z")', True),
        ('this.metadata.creation_timestamp < timestamp("2026-01-01T01:00:00+01:00")', False),
        ('this.metadata.deletion_timestamp < timestamp("2027-01-01T00:00:00Z")', False),
        # the rest
        ('"1" == this.id', True),
        ("2 < this.metadata.version", True),
        ("this.metadata.version == -1", False),
        ("this.metadata.version in [1, 2, 0x3]", True),
        ('this.id in []', False),
        ('this.metadata.name.contains("ost") && this.metadata.name.endsWith(\'on\')', True),
        ('this.metadata.name == "\\u0062o\\x73ton"', True),
        ("this.id == this.metadata.name", False),
        ("true && !false", True),
        ('((this.id)) == ("1") // a remark', True),
    ],
)  # fmt: skip
def test_what_a_filter_means(text: str, expected: bool) -> None:
    assert compile_filter(text, PRIVATE).matches(BOSTON) is expected


@pytest.mark.parametrize(
    "text, place",
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("this.id ==", "ends too early", id="half"),
        pytest.param("this.id == 'a' )", "line 1, column 16", id="a bracket too many"),
        pytest.param("this.id ==\n  @", "line 2, column 3", id="not CEL"),
        pytest.param("this.nope == 1", "line 1, column 1", id="unknown field"),
        pytest.param("that.id == 'a'", "line 1, column 1", id="unknown variable"),
        pytest.param("this.id", "line 1, column 1", id="not a condition"),
        pytest.param("this.id == 1", "line 1", id="text and number"),
        pytest.param("this.metadata.version == 1.5", "line 1", id="int and double"),
        pytest.param("this.metadata.version == 9223372036854775808", "line 1", id="beyond 64 bits"),
        pytest.param("this.status.state == CLUSTER_STATE_HAPPY", "line 1", id="unknown enum name"),
        pytest.param("this.metadata.creation_timestamp > 'x'", "line 1", id="time and text"),
        pytest.param(
            "this.metadata.creation_timestamp > timestamp('soon')", "line 1", id="no time"
        ),
        pytest.param("this.spec == this.spec", "line 1", id="messages"),
        pytest.param("this.id == null", "line 1", id="null text"),
        pytest.param("this.id < null", "line 1", id="order of null"),
        pytest.param("this.spec.auto_external_ip_attachment < true", "line 1", id="order of bools"),
        pytest.param("1 == 1", "line 1", id="constants only"),
        pytest.param("this.id.matches('a')", "line 1", id="matches"),
        pytest.param("size(this.id) == 1", "line 1", id="size"),
        pytest.param("this.metadata.version + 1 == 2", "line 1", id="arithmetic"),
        pytest.param("this.id == 'a' ? true : false", "line 1", id="ternary"),
        pytest.param("this.metadata.finalizers[0] == 'a'", "line 1", id="list index"),
        pytest.param("this.metadata.finalizers.exists(f, f == 'a')", "line 1", id="macro"),
        pytest.param("this.id in [this.id]", "line 1", id="field in a list"),
        pytest.param("this.spec.pull_secret == 'a'", "line 1", id="secret"),
        pytest.param("has(this.spec.pull_secret)", "line 1", id="presence of a secret"),
        pytest.param(
            "this.spec.pull_secret.startsWith('a')", "line 1", id="secret letter by letter"
        ),
        pytest.param("this.id == b'a'", "line 1", id="bytes"),
        pytest.param("this.id == 'a\0'", "line 1, column 14", id="NUL"),
        pytest.param("this.id == '\\x00'", "line 1", id="escaped NUL"),
        pytest.param("this.id == '\ud800'", "column 13", id="lone surrogate"),
        pytest.param("this.id == '\\ud800'", "line 1", id="escaped lone surrogate"),
        pytest.param("this.id == '\\U00110000'", "line 1", id="beyond Unicode"),
        pytest.param("this.id == '\\q'", "line 1", id="no escape"),
        pytest.param(f"{'(' * 200}true{')' * 200}", "line 1, column 33", id="deep"),
        pytest.param(f"{'(' * 2000}true{')' * 2000}", "line 1, column 33", id="very deep"),
        pytest.param(f"// '\n{'!(' * 1000}true{')' * 1000}", "line 2", id="deep after a remark"),
        pytest.param("!" * 1000 + "true", "line 1, column 33", id="a run of !"),
        pytest.param(f"{'(' * 50}this.id{')' * 50} == 'a'", "line 1", id="a deep operand"),
        pytest.param("this." + "spec." * 700 + "x == 1", "line 1", id="a long path"),
        pytest.param("true && " * 600 + "true", "4096", id="too long"),
        pytest.param(f"this.id in [{','.join(['1'] * 1001)}]", "line 1", id="a long list"),
    ],
)
def test_what_is_outside_the_subset_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(Refused, match=re.escape(place)):
        compile_filter(text, PRIVATE)


def test_the_public_descriptor_hides_what_is_private() -> None:
    compile_filter('this.status.hub == "h1"', PRIVATE)

    for text in (
        'this.status.hub == "h1"',
        "has(this.status.hub)",
        '"f" in this.metadata.finalizers',
    ):
        with pytest.raises(Refused):
            compile_filter(text, PUBLIC)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("has(event.cluster)", True),
        ("has(event.hub)", False),
        (
            'has(event.cluster) && (event.cluster.id == "1" || event.cluster.metadata.name == "x")',
            True,
        ),
        ("has(event.hub) || event.type == EVENT_TYPE_OBJECT_CREATED", True),
        ('event.hub.id == ""', True),
    ],
)
def test_filters_of_watches(text: str, expected: bool) -> None:
    event = Event(id="e", type=EventType.OBJECT_CREATED, cluster=BOSTON)

    assert compile_filter(text, EVENT, "event").matches(event) is expected


def test_a_long_chain_is_not_deep() -> None:
    text = " || ".join(f'this.id == "{number}"' for number in range(150))

    assert compile_filter(text, PRIVATE).matches(BOSTON)


def test_a_filter_knows_what_it_mentions() -> None:
    found = compile_filter(
        'this.id == "a" || has(this.metadata.labels) || !(this.status.state > 1)', PRIVATE
    )

    assert found.fields == {"id", "metadata.labels", "status.state"}


def test_filters_joined_with_and_keep_their_own_meaning() -> None:
    either = compile_filter('this.id == "1" || this.id == "2"', PRIVATE)
    ready = compile_filter("this.status.state == 2", PRIVATE)

    assert (either & ready).matches(BOSTON)
    assert not (either & ready).matches(msgspec.structs.replace(BOSTON, status=ClusterStatus()))
    assert (
        (either & ready).sql(Parameters()).startswith("((id = $1::text) or (id = $2::text)) and (")
    )


@given(text=grown(leaves))
def test_no_text_of_a_filter_becomes_sql(text: str) -> None:
    parameters = Parameters()
    sql = compile_filter(text, PRIVATE).sql(parameters)

    assert SQL.fullmatch(sql), sql


# Every word that may stand in the SQL of a filter, and nothing else: constants are $1, $2, …
SQL = re.compile(
    r"""(?:
    \$\d+::(?:text|bigint|boolean|timestamptz|double\ precision)(?:\[\])? | [()\ ,] |
    \b(?:and|or|is|not|null|true|false|in|any|case|when|then|end|coalesce|starts_with|right|length
        |strpos|to_jsonb|collate|data|id|tenant|project|name|version|created|deleted|state|template
        |hub|cluster_version)\b |
    \#>>? | @> | \? | = | <> | <=? | >=? | ::(?:bigint|boolean|timestamptz) | "C" | '' |
    'null' | '\{\}' | '\[\]' | \b0\b
    )*""",
    re.VERBOSE,
)


def test_the_sql_guard_itself_would_notice() -> None:
    assert not SQL.fullmatch("id = 'boston'")
    assert not SQL.fullmatch("id = $1::text; drop table documents")
    assert not SQL.fullmatch("version = 7")


@given(text=grown(plain_leaves))
def test_filters_agree_with_cel(text: str) -> None:
    ours = compile_filter(text, PRIVATE)
    theirs = cel.compile(text)

    for cluster, context in zip(CLUSTERS, CONTEXTS, strict=True):
        assert ours.matches(cluster) is theirs.execute(context), cluster


# --- order -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "nope", "metadata", "metadata.labels", "spec.pull_secret", "this.id sideways", "id; drop",
        "id,", "id desc desc", ",".join(["id"] * 9), "'id'", "metadata.labels.env", "id " * 3000,
        "status.conditions",
    ],
)  # fmt: skip
def test_what_cannot_be_sorted_by_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        compile_order(text, PRIVATE)


def test_an_order_is_made_of_columns_and_bound_paths() -> None:
    parameters = Parameters()
    keys = compile_order(
        "this.metadata.name DESC, status.api_url, metadata.creation_timestamp asc", PRIVATE
    )

    assert [key.sql(parameters) for key in keys] == [
        """coalesce(name, '') collate "C" desc""",
        """coalesce((data #>> $1::text[]), '') collate "C" asc""",
        "created asc",
    ]
    assert compile_order(" ", PRIVATE) == ()
