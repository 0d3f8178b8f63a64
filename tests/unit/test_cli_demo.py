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
    for act in (*demo.SIMULATED, *demo.REAL):
        if act.program == "boatyard":
            assert make_parser().parse_args(list(act.words)).verb == act.words[0]


def test_when_boatyard_cannot_start_its_last_words_are_shown(place, monkeypatch, capsys):
    program = "import sys; print('no room on the disk'); sys.exit(3)"
    monkeypatch.setattr(demo, "_boatyard", lambda: (sys.executable, "-c", program))
    assert demo.run(Namespace(simulated=True)) == 1
    assert "ended with 3:\nno room on the disk" in capsys.readouterr().err
    assert list(place.iterdir()) == []


def test_when_an_act_fails_the_demo_fails(place, monkeypatch, capsys):
    # An `up` that says it is ready, and answers nothing.
    program = (
        "import os, sys, time\n"
        "from boatyard.client.config import write_current\n"
        "if sys.argv[1] == 'up':\n"
        "    write_current(grpc='127.0.0.1:1', rest='', token_file='', pid=os.getpid())\n"
        "    time.sleep(60)\n"
        "sys.exit(5)\n"
    )
    monkeypatch.setattr(demo, "_boatyard", lambda: (sys.executable, "-c", program))
    assert demo.run(Namespace(simulated=True)) == 1
    assert "`boatyard get hubs` ended with 5" in capsys.readouterr().err
    assert list(place.iterdir()) == []
