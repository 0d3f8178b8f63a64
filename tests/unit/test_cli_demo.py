"""A demo that cannot go on says why, ends with 1, and still removes what it made."""

from __future__ import annotations

import sys
from argparse import Namespace

import pytest

from boatyard.app import demo
from boatyard.app.main import make_parser


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    return tmp_path


def test_every_act_is_a_command(place):
    for act in (*demo.SIMULATED_STEPS, *demo.REAL_STEPS):
        if act.program == "boatyard":
            assert make_parser().parse_args(list(act.arguments)).verb == act.arguments[0]


@pytest.mark.parametrize("template, kubectl", [("small", ""), ("kubernetes_small", "x/kubectl")])
def test_the_closing_words_are_of_the_template_that_was_shown(template, kubectl):
    words = demo.format_closing_text(".venv/bin/boatyard", kubectl)
    assert f"--template {template}\n" in words
    assert ("x/kubectl --kubeconfig web-1.kubeconfig get nodes" in words) == bool(kubectl)
    assert ".venv/bin/boatyard demo --keep" in words
    commands = [
        line.split("    ")[0].split() for line in words.splitlines() if "/boatyard " in line
    ]
    for command in commands:
        assert make_parser().parse_args(command[1:]).verb == command[1]


def test_when_boatyard_cannot_start_its_last_words_are_shown(place, monkeypatch, capsys):
    program = "import sys; print('no room on the disk'); sys.exit(3)"
    monkeypatch.setattr(demo, "_boatyard_command", lambda: (sys.executable, "-c", program))
    assert demo.run(Namespace(simulated=True)) == 1
    assert "ended with 3:\nno room on the disk" in capsys.readouterr().err
    assert list(place.iterdir()) == []


def test_when_an_act_fails_the_demo_fails(place, monkeypatch, capsys):
    # An `up` that says it is ready, and answers nothing.
    program = (
        "import os, sys, time\n"
        "from boatyard.client.config import record_local_server\n"
        "if sys.argv[1] == 'up':\n"
        "    record_local_server(grpc='127.0.0.1:1', rest='', token_file='', pid=os.getpid())\n"
        "    time.sleep(60)\n"
        "sys.exit(5)\n"
    )
    monkeypatch.setattr(demo, "_boatyard_command", lambda: (sys.executable, "-c", program))
    assert demo.run(Namespace(simulated=True)) == 1
    assert "`boatyard get hubs` ended with 5" in capsys.readouterr().err
    assert list(place.iterdir()) == []
