"""What is typed is understood, or refused with the words that help."""

from __future__ import annotations

import pytest

from boatyard.app.main import make_parser
from boatyard.cli.cluster_flags import make_cluster, parse_parameters, parse_sizes
from boatyard.cli.text_format import clean, format_duration, parse_duration
from boatyard.client.kinds import KINDS, find_kind
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import ClusterTemplate, ClusterTemplateParameterDefinition

STRING = "type.googleapis.com/google.protobuf.StringValue"
INT32 = "type.googleapis.com/google.protobuf.Int32Value"
INT64 = "type.googleapis.com/google.protobuf.Int64Value"
BOOL = "type.googleapis.com/google.protobuf.BoolValue"
DOUBLE = "type.googleapis.com/google.protobuf.DoubleValue"


def template(**types: str) -> ClusterTemplate:
    return ClusterTemplate(
        id="small",
        parameters=tuple(
            ClusterTemplateParameterDefinition(name=name, type=type) for name, type in types.items()
        ),
    )


def test_an_order_is_read_from_its_flags(tmp_path):
    key = tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAA ann\n")
    args = make_parser().parse_args(
        [
            *("create", "cluster", "web-1", "--template", "small", "--node-set", "compute=5"),
            *("-p", "size=3", "--zone", "north", "--pod-cidr", "10.1.0.0/16"),
            *("--ssh-public-key-file", str(key), "-l", "team=web", "--project", "shop"),
        ]
    )
    cluster = make_cluster(args, template=template(size=INT32), by_id=True, version="v1")
    assert cluster.metadata.name == "web-1"
    assert cluster.metadata.labels == {"team": "web"}
    assert cluster.metadata.project == "shop"
    assert cluster.spec.template.id == "small"
    assert cluster.spec.node_sets["compute"].size == 5
    assert cluster.spec.template_parameters == {"size": {"@type": INT32, "value": 3}}
    assert cluster.spec.version.id == "v1"
    assert cluster.spec.zone == "north"
    assert cluster.spec.ssh_public_key == "ssh-ed25519 AAAA ann"
    assert cluster.spec.network is not None
    assert cluster.spec.network.pod_cidr == "10.1.0.0/16"
    assert cluster.spec.network.service_cidr is None
    assert cluster.spec.pull_secret is None


@pytest.mark.parametrize("type, text, value", [
    pytest.param(STRING, "a=b", "a=b", id="a string may hold the separator"),
    pytest.param(INT32, "-3", -3, id="a whole number"),
    pytest.param(INT64, "9007199254740993", "9007199254740993", id="wide ones are strings in JSON"),
    pytest.param(BOOL, "yes", True, id="yes is true"),
    pytest.param(DOUBLE, "2.5", 2.5, id="a number"),
    pytest.param("type.googleapis.com/google.protobuf.Value", '{"a": [1]}', {"a": [1]}, id="JSON"),
])  # fmt: skip
def test_a_parameter_takes_the_type_its_template_declares(type, text, value):
    assert parse_parameters([f"key={text}"], template(key=type)) == {
        "key": {"@type": type, "value": value}
    }


def test_everything_wrong_with_the_parameters_is_said_at_once():
    needed = ClusterTemplateParameterDefinition(name="owner", type=STRING, required=True)
    form = template(size=INT32, on=BOOL)
    form = ClusterTemplate(parameters=(*form.parameters, needed))
    with pytest.raises(Refused) as refused:
        parse_parameters(["size=many", "on=perhaps", "colour=red"], form)
    assert [violation.path for violation in refused.value.violations] == [
        "-p size",
        "-p on",
        "-p colour",
        "-p owner",
    ]


@pytest.mark.parametrize("texts", [
    pytest.param(["compute"], id="no size"),
    pytest.param(["=3"], id="no name"),
    pytest.param(["compute=-1"], id="negative"),
    pytest.param(["compute=3.5"], id="a fraction"),
    pytest.param(["compute=٣"], id="digits of another script"),
    pytest.param(["compute=3", "compute=4"], id="twice"),
])  # fmt: skip
def test_a_size_that_is_none_is_refused(texts):
    with pytest.raises(Refused):
        parse_sizes(texts, flag="--node-set")


@pytest.mark.parametrize("text, seconds", [
    ("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172800), ("0", 0),
])  # fmt: skip
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "10 minutes", "5x", "-3s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(Refused):
        parse_duration(text)


@pytest.mark.parametrize("seconds, text", [
    (-5, "0s"), (0, "0s"), (59.9, "59s"), (252, "4m12s"), (3 * 3600 + 300, "3h05m"), (187200, "2d4h"),
])  # fmt: skip
def test_durations_are_spelled(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize("word", ["cluster", "clusters", "CLUSTERS", "cl"])
def test_a_kind_is_known_by_singular_plural_and_short(word):
    assert find_kind(word).name == "cluster"


def test_every_kind_is_known_by_its_words_and_no_word_means_two():
    words = [word for kind in KINDS for word in {kind.name, kind.plural, *kind.aliases}]
    assert len(words) == len(set(words))
    assert find_kind("cluster_templates").name == find_kind("cluster-template").name


def test_an_unknown_kind_is_refused_with_those_there_are():
    with pytest.raises(Refused, match="clusters"):
        find_kind("pods")


@pytest.mark.parametrize("hostile", [
    "\x1b[2J", "\x1b]0;title\x07", "a\rb", "a\nb", "\x9b31m", "\u202ereversed", "\u2028", "\x00", "\x7f",
])  # fmt: skip
def test_nothing_reaches_the_terminal_that_moves_hides_or_reorders(hostile):
    shown = clean(f"web{hostile}1")
    assert shown.isprintable()
    assert shown.startswith("web")


def test_ordinary_names_of_the_world_are_left_alone():
    assert clean("Müller-東京 → 3") == "Müller-東京 → 3"


@pytest.mark.parametrize("argv", [
    ["--address", "a:1", "get", "clusters"],
    ["get", "clusters", "--address", "a:1"],
])  # fmt: skip
def test_the_connection_may_be_named_before_or_after_the_verb(argv):
    assert make_parser().parse_args(argv).address == "a:1"


@pytest.mark.parametrize("argv", [
    ["create", "cluster", "web-1"], ["create", "pod", "x", "-t", "small"], ["fly"], [],
    ["wait", "cluster", "x", "--for", "ever"], ["get", "clusters", "-o", "xml"],
])  # fmt: skip
def test_wrong_usage_ends_with_2(argv, capsys):
    with pytest.raises(SystemExit) as left:
        make_parser().parse_args(argv)
    assert left.value.code == 2
    assert "usage: boatyard" in capsys.readouterr().err
