"""What is read of a role, and that every mistake in it is told: where, what, and what to do."""

from __future__ import annotations

import pytest

from boatyard.automation.drivers.local.values import RESERVED, RESERVED_PREFIXES
from boatyard.roles.form import RequiredIf
from boatyard.roles.role import InvalidRole, TemplateRole, read_role
from boatyard.roles.template_metadata import NodeSet, VersionRange
from tests.support.roles import SPECS, TEMPLATE, files


def role(**changes: str | None) -> TemplateRole:
    read = read_role("web", files(**changes))
    assert isinstance(read, TemplateRole), [str(one) for one in read.mistakes]
    return read


def mistakes(**changes: str | None) -> list[str]:
    read = read_role("web", files(**changes))
    assert isinstance(read, InvalidRole)
    return [str(one) for one in read.mistakes]


def spec(options: str) -> str:
    """An argument spec with these options."""
    indented = "\n".join(f"      {line}" for line in options.strip("\n").splitlines())
    return f"argument_specs:\n  main:\n    options:\n{indented}\n"


def option(text: str) -> str:
    """An argument spec with one option `x`."""
    return spec(f"x: {{{text}}}")


def test_a_role_is_what_its_files_say() -> None:
    found = role()

    assert (found.name, found.metadata.id, found.metadata.name) == ("web", "web_small", "web-small")
    assert found.metadata.node_sets == {"compute": NodeSet("bm-small", 3)}
    assert found.phases == ("post_install",)
    assert found.form.options["greeting"].default == "hello"
    assert found.form.options["replicas"].choices == (1, 2, 3)
    assert found.form.options["password"].secret
    assert found.digest.startswith("sha256:")


def test_a_template_says_all_there_is_to_say() -> None:
    found = role(
        template="""
        id: ocp_4_17_small
        name: ocp-small
        title: OpenShift
        platform: hosted
        platform_settings: {channel: stable}
        hub_labels: {gpu: "yes"}
        node_sets: {compute: {host_type: bm-small, size: 3}, gpu: {host_type: bm-gpu, size: 1}}
        allowed_host_types: [bm-small, bm-large]
        versions: {from: "4.17", below: "4.18", default: "4.17.9"}
        hooks: [post_install]
        network: {pod_cidr: 10.128.0.0/14}
        """
    ).metadata

    assert (found.id, found.name, found.platforms) == ("ocp_4_17_small", "ocp-small", ("hosted",))
    assert found.versions == VersionRange("4.17", "4.18", "4.17.9")
    assert found.allowed_host_types == ("bm-small", "bm-large")
    assert (found.hub_labels, found.hooks) == ({"gpu": "yes"}, ("post_install",))
    assert found.pod_cidr == "10.128.0.0/14"


OSAC = """
name: ocp-small
title: OpenShift Small Cluster
default_node_request:
- resourceClass: fc430
  numberOfNodes: 2
allowed_resource_classes: [fc430]
implementation_strategy: whatever
"""


def test_a_role_made_for_osac_is_offered_unchanged() -> None:
    found = role(
        template=None,
        osac=OSAC,
        specs="""
        argument_specs:
          main:
            options:
              cluster_order: {type: dict, required: true}
              template_parameters:
                type: dict
                options:
                  pull_secret: {type: str, required: true, no_log: true}
                  rounds: {type: int, default: 3}
        """,
    )

    assert (found.metadata.id, found.metadata.name) == ("web", "ocp-small")
    assert found.metadata.node_sets == {"fc430": NodeSet("fc430", 2)}
    assert found.metadata.allowed_host_types == ("fc430",)
    assert list(found.form.options) == ["pull_secret", "rounds"]


def test_the_parameters_of_osac_are_taken_where_there_is_no_spec() -> None:
    listed = OSAC + (
        "parameters:\n"
        "- {name: enable_maas, title: MaaS, type: boolean, default: true}\n"
        "- {name: models, type: list, default: []}\n"
    )
    found = role(template=None, osac=listed, specs=None).form.options

    assert (found["enable_maas"].type, found["enable_maas"].default) == ("bool", True)
    assert (found["models"].type, found["models"].default) == ("list", [])


def test_relations_and_nested_options_are_read() -> None:
    found = role(
        specs="""
        argument_specs:
          main:
            mutually_exclusive: [[a, b]]
            required_if: [[mode, big, [a, b], true]]
            required_by: {a: disks}
            options:
              mode: {choices: [small, big], aliases: [kind]}
              a: {}
              b: {}
              disks:
                type: list
                elements: dict
                options:
                  size: {type: bytes, required: true}
                  fast: {type: bool, default: "yes"}
                required_together: [[size, fast]]
        """
    ).form

    assert found.relations.mutually_exclusive == (("a", "b"),)
    assert found.relations.required_if == (RequiredIf("mode", "big", ("a", "b"), True),)
    assert found.relations.required_by == {"a": ("disks",)}
    assert found.options["mode"].aliases == ("kind",)
    inner = found.options["disks"]
    assert inner.options is not None
    assert inner.options["fast"].default is True
    assert inner.relations.required_together == (("size", "fast"),)


@pytest.mark.parametrize(
    "said, type_, default",
    [
        pytest.param('type: int, default: "4"', "int", 4, id="a number in quotes"),
        pytest.param("type: str, default: 4", "str", "4", id="a text that looks like a number"),
        pytest.param("type: bool, default: 'off'", "bool", False, id="a word for false"),
        pytest.param("default: 5", "int", 5, id="no type: the default tells"),
        pytest.param("default: [a]", "list", ["a"], id="no type, a list"),
        pytest.param("type: string, default: x", "str", "x", id="string is str"),
        pytest.param("default: 2024-01-02", "str", "2024-01-02", id="a date stays a text"),
    ],
)
def test_defaults_are_read_as_ansible_would(said: str, type_: str, default: object) -> None:
    found = role(specs=option(said)).form.options["x"]

    assert (found.type, found.has_default, found.default) == (type_, True, default)


def test_a_default_that_only_the_role_can_work_out_is_left_to_it() -> None:
    found = role(specs=option("type: int, default: '{{ other + 1 }}'")).form.options["x"]

    assert (found.has_default, found.default_text) == (False, "{{ other + 1 }}")


SPEC_MISTAKES = [
    pytest.param("type: integer", "main.options.x.type: 'integer' is not a type", id="a type"),
    pytest.param("elements: strings", "x.elements: 'strings' is not a type", id="elements"),
    pytest.param("requried: true", "x.requried: is not a word of argument specs", id="a typo"),
    pytest.param("required: maybe", "x.required: 'maybe' is not true or false", id="a flag"),
    pytest.param("type: int, default: many", "x.default: is a text", id="a default"),
    pytest.param("choices: [a, b], default: c", "x.default: 'c' is not one of", id="no choice"),
    pytest.param(
        "choices: [a, no]", "x.choices[1]: is true or false; quote it", id="unquoted words"
    ),
    pytest.param("choices: [a, a]", "x.choices[1]: 'a' is there twice", id="a choice twice"),
    pytest.param("choices: []", "x.choices: is not a list of values", id="no choices"),
    pytest.param("type: str, options: {y: {}}", "x.options: belong to a dict", id="options"),
    pytest.param("type: str, elements: str", "x.elements: belong to a list", id="elements of text"),
    pytest.param("aliases: y", "x.aliases: is not a list of names", id="aliases"),
    pytest.param("description: {a: 1}", "x.description: is not a text", id="a description"),
    pytest.param("default: !vault abc", "x.default: the tag '!vault' is not obeyed", id="a tag"),
    pytest.param(
        "default: !!python/object/apply:os.system [id]", "is not obeyed here", id="a python tag"
    ),
    pytest.param("type: float, default: .inf", "x.default: is not a number", id="infinity"),
    pytest.param("type: str, type: int", "x.type: is there twice", id="a key twice"),
    pytest.param("yes: 1", "has a key that is read as something other than text", id="a key"),
]


@pytest.mark.parametrize("said, words", SPEC_MISTAKES)
def test_a_mistake_in_the_form_is_told_with_its_place(said: str, words: str) -> None:
    (found,) = mistakes(specs=option(said))

    assert found.startswith("meta/argument_specs.yml:4: argument_specs.main")
    assert words in found


@pytest.mark.parametrize("name", ["ansible_user", "hostvars", "inventory_dir", "a-b", "1a"])
def test_a_tenant_cannot_be_given_the_variables_that_steer_ansible(name: str) -> None:
    (found,) = mistakes(specs=spec(f'"{name}": {{}}'))

    assert f"options.{name}: is" in found


@pytest.mark.parametrize("name", sorted({*RESERVED, *(f"{one}x" for one in RESERVED_PREFIXES)}))
def test_what_no_run_would_take_as_a_parameter_is_told_when_the_role_is_read(name: str) -> None:
    (found,) = mistakes(specs=spec(f"{name}: {{type: str}}"))

    assert f"options.{name}: is a name that Ansible or Boatyard uses" in found


@pytest.mark.parametrize(
    "said, words",
    [
        pytest.param("mutually_exclusive: [[a, c]]", "there is no option 'c'", id="a name"),
        pytest.param("required_together: 1", "is not a list of lists", id="a number"),
        pytest.param("required_if: [[a, x]]", "is not a condition", id="half a condition"),
        pytest.param("required_if: [[b, x, [a]]]", "is a text", id="a value of another type"),
        pytest.param("required_by: [a]", "is not a mapping", id="a list"),
    ],
)
def test_a_mistake_in_a_relation_is_told(said: str, words: str) -> None:
    text = f"argument_specs:\n  main:\n    {said}\n    options: {{a: {{}}, b: {{type: int}}}}\n"

    assert any(words in one for one in mistakes(specs=text))


@pytest.mark.parametrize(
    "said, words",
    [
        pytest.param("id: a b", "id: 'a b' is not an id", id="an id"),
        pytest.param("name: A_b", "name: 'A_b' is not a name", id="a name"),
        pytest.param("node_sets: {A_: {host_type: x, size: 1}}", "'A_' is not a name", id="a set"),
        pytest.param(
            "node_sets: {a: {size: 1}}", "node_sets.a.host_type: is missing", id="no host"
        ),
        pytest.param(
            "node_sets: {a: {host_type: x, size: 0}}", "a.size: is not a size", id="empty"
        ),
        pytest.param("colour: red", "colour: is not a word of templates", id="a word"),
        pytest.param("versions: {from: 4.17}", "versions.from: is not a text; quote it", id="4.17"),
        pytest.param("versions: {from: new}", "versions.from: is not a version", id="no version"),
        pytest.param("hooks: [party]", "hooks[0]: 'party' is not a hook", id="a hook"),
        pytest.param("hooks: [scale]", "hooks: there is no tasks/scale.yaml", id="no tasks"),
        pytest.param("title: [a]", "title: is not a text", id="a title"),
    ],
)
def test_a_mistake_in_the_template_is_told(said: str, words: str) -> None:
    key = said.partition(":")[0]
    kept = "\n".join(line for line in TEMPLATE.splitlines() if not line.startswith(key))
    if key == "node_sets":
        kept = "\n".join(line for line in kept.splitlines() if not line.startswith("  compute"))

    found = mistakes(template=f"{kept}\n{said}\n")

    assert [one for one in found if words in one and one.startswith("meta/template.yaml")], found


def test_all_mistakes_of_a_role_are_told_together() -> None:
    found = mistakes(
        template="node_sets: {compute: {size: many}}\ncolour: red\n",
        specs=spec("a: {type: integer}\nb: {default: 1, type: bool}"),
        tasks="name: not a list",
    )

    assert [one.partition(":")[0] for one in found] == [
        *["meta/argument_specs.yml"] * 2,
        *["meta/template.yaml"] * 3,
        "tasks/post_install.yaml",
    ]


def test_a_template_may_be_a_form_and_nothing_else() -> None:
    assert role(template=TEMPLATE + "hooks: []\n", tasks=None).phases == ()


@pytest.mark.parametrize(
    "changes, words",
    [
        pytest.param(
            {"template": TEMPLATE + "platform: [any, local]"},
            "platform: what comes after any is never looked at",
            id="a platform that nobody gets",
        ),
        pytest.param(
            {"template": TEMPLATE + "platform: 5"}, "platform: is not a list", id="no name"
        ),
        pytest.param({"template": None}, "meta/template.yaml: is missing", id="says nothing"),
        pytest.param({"tasks": None}, "tasks: has nothing that is run", id="does nothing"),
        pytest.param({"specs": ""}, "meta/argument_specs.yml: is empty", id="empty"),
        pytest.param({"specs": "a: [1"}, "meta/argument_specs.yml:2: is not YAML", id="no YAML"),
        pytest.param({"specs": "a: \x01"}, "is not YAML", id="control characters"),
        pytest.param({"specs": "[" * 100}, "nested more than 32 levels", id="too deep"),
        pytest.param({"specs": "a: &a [*a]"}, "refers to itself", id="a loop"),
        pytest.param({"specs": "- a"}, "is not a mapping", id="a list"),
        pytest.param({"specs": "a: 1"}, "argument_specs: is missing", id="another file"),
        pytest.param({"specs": "a: 1\n" + "# x\n" * 100_000}, "has 400005 bytes", id="too large"),
        pytest.param({"tasks": "a: [}"}, "post_install.yaml:1: is not YAML", id="broken tasks"),
        pytest.param(
            {"template": None, "osac": "template_type: compute_instance"},
            "template_type: 'compute_instance' is not offered here",
            id="not a cluster",
        ),
    ],
)
def test_what_cannot_be_read_is_told(changes: dict[str, str | None], words: str) -> None:
    assert any(words in one for one in mistakes(**changes)), mistakes(**changes)


def test_aliases_that_multiply_are_not_followed() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    assert any("more than 20000 values" in one for one in mistakes(specs="\n".join(lines)))


def test_a_long_text_is_not_repeated_without_end() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 100)}]"

    assert any("aliases written out" in one for one in mistakes(specs=text))


@pytest.mark.parametrize("said", ['default: "a\\0b"', '"a\\0b": 1'])
def test_what_cannot_be_kept_is_a_mistake(said: str) -> None:
    assert any("a character that cannot be kept" in one for one in mistakes(specs=option(said)))


def test_anchors_and_merges_are_read() -> None:
    found = role(specs=spec("a: &a {type: int, required: true}\nb: {<<: *a, required: false}"))

    assert (found.form.options["b"].type, found.form.options["b"].required) == ("int", False)


def test_two_files_for_one_thing_are_a_mistake() -> None:
    made = {**files(), "meta/argument_specs.yaml": files()["meta/argument_specs.yml"]}

    read = read_role("web", made)

    assert isinstance(read, InvalidRole)
    assert "is there beside" in str(read.mistakes[0])


def test_tasks_may_carry_tags_that_only_ansible_knows() -> None:
    role(tasks="- ansible.builtin.debug: {msg: !unsafe '{{ x }}'}\n")


def test_the_spec_may_be_in_the_main_file() -> None:
    made = {**files(specs=None), "meta/main.yml": files(specs=SPECS)["meta/argument_specs.yml"]}

    read = read_role("web", made)

    assert isinstance(read, TemplateRole)
    assert "greeting" in read.form.options
