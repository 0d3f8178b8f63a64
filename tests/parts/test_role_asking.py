"""How a role's task asks: again when nobody answers, never elsewhere, and it ends when the answer is no."""

from __future__ import annotations

import importlib.util
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from boatyard.automation.drivers.local.run_plan import INSIDE_DIRECTORY
from boatyard.pki.selfsigned import CertificateFiles, ensure_self_signed

PLACE = "collections/ansible_collections/boatyard/service/plugins/plugin_utils/asking.py"
GOOD = (200, {"steps": ["hosts"]})


def _load() -> ModuleType:
    """It is no module of ours: it runs in Ansible's environment, with the standard library alone."""
    spec = importlib.util.spec_from_file_location("role_asking", INSIDE_DIRECTORY / PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


asking = _load()
Answer = tuple[int, Any] | str


class ScriptedAnswers:
    """Answers in turn as told; the last answer again and again. `hang up` closes without a word."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.heard: list[tuple[str, str, str]] = []
        self.port = 0

    def next(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serving(
    told: ScriptedAnswers, port: int = 0, pair: CertificateFiles | None = None
) -> Iterator[ScriptedAnswers]:
    class Handler(BaseHTTPRequestHandler):
        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            told.heard.append((f"{self.command} {self.path}", body, self.headers["Authorization"]))
            answer = told.next()
            if answer == "hang up":
                self.close_connection = True
                return
            assert isinstance(answer, tuple)
            status, said = answer
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            if status in (302, 307):
                self.send_header("Location", f"http://127.0.0.1:{told.port}/elsewhere")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if pair is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def asker(told: ScriptedAnswers, seconds: float | None = 20.0, **more: Any) -> Any:
    api = {
        "url": f"http://127.0.0.1:{told.port}",
        "token": "t.o.k",
        "order": "o/1",
        "expires": time.time() + 60,
    }
    return asking.Asking(api | more, seconds)


def run(**steps: Any) -> tuple[int, Any]:
    known = {name: {"name": name, "state": "STEP_STATE_QUEUED"} for name in asking.STEPS}
    for name, more in steps.items():
        known[name] |= {"state": more} if isinstance(more, str) else more
    return 200, {"steps": list(known.values()), "has_kubeconfig": True}


def test_the_step_goes_to_the_order_of_the_token_and_nowhere_else() -> None:
    with serving(ScriptedAnswers(GOOD)) as told:
        assert asker(told).ask("hosts") is True
        assert told.heard == [
            ("POST /api/boatyard/v1/role_runs/o%2F1/ask", '{"step": "hosts"}', "Bearer t.o.k")
        ]
    with serving(ScriptedAnswers((200, {}))) as told:
        assert asker(told).ask("hosts") is False, "nothing of it is new"


@pytest.mark.parametrize(
    "trouble",
    [
        "hang up",
        (503, {"message": "the database does not answer; try again"}),
        (500, b"<html>"),
        (409, {"message": "changed meanwhile"}),
        (429, {"message": "too many"}),
    ],
    ids=str,
)
def test_what_passes_by_itself_is_asked_again(trouble: Answer) -> None:
    with serving(ScriptedAnswers(trouble, trouble, GOOD)) as told:
        assert asker(told).ask("hosts") is True
        assert len(told.heard) == 3


def test_a_server_that_is_gone_is_waited_for_at_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pause, paused = asking.Asking._pause, threading.Event()

    def hear(self: Any, seconds: float) -> Any:
        paused.set()
        return pause(self, seconds)

    monkeypatch.setattr(asking.Asking, "_pause", hear)
    with serving(ScriptedAnswers(GOOD)) as told:
        port = told.port
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(asker(told).ask("hosts")))
    thread.start()
    assert paused.wait(20), "nobody listens"
    with serving(ScriptedAnswers(GOOD), port):
        thread.join(20)
    assert answers == [True]


def test_when_its_time_is_up_it_says_who_did_not_answer() -> None:
    words = "did not answer for 1 s: going down"
    with (
        serving(ScriptedAnswers((503, {"message": "going down"}))) as told,
        pytest.raises(asking.Failed, match=words),
    ):
        asker(told, 0.6).ask("hosts")


@pytest.mark.parametrize(
    "answer, words",
    [
        pytest.param((401, {"message": "its run is over"}), "its run is over", id="over"),
        pytest.param((403, {"message": "another order"}), "another order", id="another order"),
        pytest.param((400, {"message": "step: no"}), "step: no", id="refused"),
        pytest.param((404, b"<html>"), "answered 404", id="no words"),
        pytest.param((200, b"<html>"), "is not Boatyard", id="a stranger"),
        pytest.param((307, {}), "answered 307", id="a redirect"),
    ],
)
def test_a_no_is_not_asked_again_and_the_token_follows_nobody(answer: Answer, words: str) -> None:
    with serving(ScriptedAnswers(answer)) as told:
        with pytest.raises(asking.Failed, match=words):
            asker(told).ask("hosts")
        assert len(told.heard) == 1


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serving(ScriptedAnswers(GOOD)) as told:
        assert asker(told).ask("hosts")


def test_it_waits_while_a_step_only_waits_and_goes_on_when_it_is_done() -> None:
    waits = {"state": "STEP_STATE_WAITING", "reason": "NoHosts", "message": "none is free"}
    with serving(
        ScriptedAnswers(run(), run(hosts=waits), "hang up", run(hosts=asking.DONE))
    ) as told:
        assert asker(told).wait(["hosts"])["has_kubeconfig"]
        assert len(told.heard) == 4


def test_the_platform_is_there_with_its_kubeconfig() -> None:
    status, early = run(platform=asking.DONE)
    with serving(
        ScriptedAnswers((status, early | {"has_kubeconfig": False}), (status, early))
    ) as told:
        asker(told).wait(["platform"])
        assert len(told.heard) == 2


@pytest.mark.parametrize(
    "pair_of, trusted",
    [
        pytest.param("server", True, id="the server's own"),
        pytest.param("another", False, id="another's"),
        pytest.param("", False, id="the system's"),
    ],
)
def test_tls_is_trusted_by_the_certificate_that_was_given(
    tmp_path: Path, pair_of: str, trusted: bool
) -> None:
    made: dict[str, CertificateFiles] = {}
    for name in ("server", "another"):
        (tmp_path / name).mkdir()
        made[name] = ensure_self_signed(tmp_path / name, [], now=datetime.now(UTC))
    ca = made[pair_of].certificate.read_text() if pair_of else ""
    with serving(ScriptedAnswers(GOOD), pair=made["server"]) as told:
        one = asker(told, url=f"https://127.0.0.1:{told.port}", ca=ca)
        if trusted:
            assert one.ask("hosts") is True
            return
        began = time.monotonic()
        with pytest.raises(asking.Failed, match="certificate is not trusted"):
            one.ask("hosts")
        assert time.monotonic() - began < 10, "asking again would not help"
        assert told.heard == [], "it never saw the token"


def test_it_never_takes_longer_than_its_token_is_good() -> None:
    def slow(seconds: float | None) -> float:
        with serving(ScriptedAnswers(run())) as told:
            one = asker(told, seconds, expires=time.time() + 1.0)
            began = time.monotonic()
            with pytest.raises(asking.Failed, match=r"not done after 1 s: hosts \(queued\)"):
                one.wait(["hosts"])
            return time.monotonic() - began

    assert slow(None) < 10
    assert slow(3600.0) < 10
