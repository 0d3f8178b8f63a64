"""The parts of the automation driver `eda` that need nobody: rate, signature, settings, records, event."""

from __future__ import annotations

import base64
import json

import pytest

from boatyard.automation import signatures
from boatyard.automation.drivers.eda.settings import EdaSettings, read_settings
from boatyard.automation.drivers.eda.token_bucket import TokenBucket
from boatyard.automation.drivers.eda.webhook import build_event
from boatyard.automation.external_runs import (
    FAILED,
    LOG_LINES_LIMIT,
    RECORDED,
    SEND_AGAIN,
    SENT,
    SUCCEEDED,
    ExternalRun,
    ExternalRunResult,
    RunLogLine,
    is_run_id,
    make_run_id,
    secret_name,
)
from boatyard.automation.port import RunSpec
from boatyard.model.errors import Refused

GOOD = {"eda.url": "https://eda.example:5000/", "eda.callback-url": "http://operator:8082"}


# --- rate --------------------------------------------------------------------------------------


def test_so_many_leave_at_once_and_then_so_many_a_second() -> None:
    bucket = TokenBucket(per_second=2)
    assert [bucket.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert bucket.take(100.25) == pytest.approx(0.25)
    assert bucket.take(100.5) == 0.0
    assert bucket.take(100.5) > 0


def test_over_an_hour_no_more_leave_than_the_rate_allows() -> None:
    bucket = TokenBucket(per_second=0.5)
    sent = sum(bucket.take(tenth / 10) == 0.0 for tenth in range(36_000))
    assert sent == 1 + 1799


def test_a_pause_saves_up_one_second_and_no_more() -> None:
    bucket = TokenBucket(per_second=3)
    assert sum(bucket.take(0.0) == 0.0 for _ in range(9)) == 3
    assert sum(bucket.take(1_000.0) == 0.0 for _ in range(9)) == 3


def test_a_clock_that_is_set_back_lets_nobody_wait_longer() -> None:
    bucket = TokenBucket(per_second=1)
    assert bucket.take(1_000.0) == 0.0
    assert bucket.take(10.0) == pytest.approx(1.0)
    assert bucket.take(11.0) == 0.0


# --- signature ---------------------------------------------------------------------------------


def test_a_signature_is_what_anybody_computes_who_reads_the_docs() -> None:
    # printf '1767225600.{}' | openssl dgst -sha256 -hmac secret
    made = "fa7eaa06bf97d7815f3f456e97cde70c9e50cb005f01660c8d10b10c21964887"
    assert signatures.sign_message("secret", "1767225600", b"{}") == f"sha256={made}"


@pytest.mark.parametrize(
    "secret, timestamp, body, signature",
    [
        pytest.param("other", "1", b"{}", None, id="another secret"),
        pytest.param("secret", "2", b"{}", None, id="another time"),
        pytest.param("secret", "1", b"{ }", None, id="another body"),
        pytest.param("secret", "1", b"{}", "", id="none"),
        pytest.param("secret", "1", b"{}", "sha256=", id="empty"),
        pytest.param("secret", "1", b"{}", "sha256=é", id="no hex at all"),
    ],
)
def test_any_other_signature_is_wrong(
    secret: str, timestamp: str, body: bytes, signature: str | None
) -> None:
    right = signatures.sign_message("secret", "1", b"{}")
    assert signatures.is_signed("secret", "1", b"{}", right)
    assert not signatures.is_signed(
        secret, timestamp, body, right if signature is None else signature
    )


def test_without_a_secret_nobody_signs() -> None:
    assert not signatures.is_signed("", "1", b"{}", signatures.sign_message("", "1", b"{}"))


def test_the_border_between_time_and_body_cannot_be_moved() -> None:
    assert signatures.sign_message("secret", "12", b"3") != signatures.sign_message(
        "secret", "1", b"23"
    )


@pytest.mark.parametrize(
    "timestamp, fresh",
    [
        ("1000", True),
        ("1300", True),
        ("700", True),
        ("1301", False),
        ("699", False),
        ("", False),
        ("-1000", False),
        ("1000.0", False),
        ("١٠٠٠", False),
        ("9" * 5000, False),
        ("nan", False),
    ],
)
def test_a_message_is_heard_for_five_minutes(timestamp: str, fresh: bool) -> None:
    assert signatures.is_fresh(timestamp, 1000.0) is fresh


# --- settings ----------------------------------------------------------------------------------


def test_settings_have_defaults_and_lose_a_last_slash() -> None:
    assert read_settings(GOOD) == EdaSettings(
        url="https://eda.example:5000", callback_url="http://operator:8082"
    )


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"eda.url": ""}, "eda.url"),
        ({"eda.url": "eda.example:5000"}, "eda.url"),
        ({"eda.url": "http://eda.example:99999"}, "eda.url"),
        ({"eda.url": "http://me:pass@eda.example"}, "eda.url"),
        ({"eda.callback-url": "ftp://operator"}, "eda.callback-url"),
        ({"eda.callback-url": "http://operator/?x=1"}, "eda.callback-url"),
        ({"eda.per-second": "0"}, "eda.per-second"),
        ({"eda.per-second": "often"}, "eda.per-second"),
        ({"eda.per-second": "nan"}, "eda.per-second"),
        ({"eda.resend-seconds": "inf"}, "eda.resend-seconds"),
        ({"eda.resend-seconds": "-5"}, "eda.resend-seconds"),
    ],
)
def test_a_wrong_setting_is_named(changes: dict[str, str], field: str) -> None:
    with pytest.raises(Refused) as caught:
        read_settings({**GOOD, **changes})
    assert [one.path for one in caught.value.violations] == [f"settings.{field}"]


# --- records -----------------------------------------------------------------------------------

RUN = ExternalRun(
    id="x", key="o/cluster/run", action="create-hosted-cluster", attempt=1, state=SENT
)


def test_a_result_ends_a_run_and_again_does_not() -> None:
    for result in (SUCCEEDED, FAILED):
        ended = RUN.with_result(ExternalRunResult(result=result), "now")
        assert (ended.state, ended.is_over) == (result, True)
    again = RUN.with_result(ExternalRunResult(result=SEND_AGAIN, message="no answer"), "now")
    assert (again.state, again.is_over, again.result) == (RECORDED, False, None)


def test_a_story_ends_somewhere_and_always_with_its_end() -> None:
    run = RUN
    for _ in range(100):
        run = run.with_log_line(RunLogLine(at="now", kind="task", text="sent again"))
    run = run.with_result(ExternalRunResult(result=SUCCEEDED), "now")
    events = run.events(after=0)
    assert [one.number for one in events] == list(range(1, LOG_LINES_LIMIT + 2))
    assert events[-1].kind == "end"
    assert run.events(after=LOG_LINES_LIMIT) == events[-1:]


def test_a_run_id_names_its_record_and_is_another_each_time() -> None:
    first, second = make_run_id("o/cluster/run", "a"), make_run_id("o/cluster/run", "b")
    assert first != second
    for one in (first, second):
        assert is_run_id(one)
        assert one.rpartition("-")[0] == secret_name("o/cluster/run")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "run-",
        "boatyard-hub",
        "run-a-b",
        make_run_id("k", "n")[:-1],
        make_run_id("k", "n").upper(),
    ],
)
def test_other_names_of_secrets_are_no_run_ids(text: str) -> None:
    assert not is_run_id(text)


# --- event -------------------------------------------------------------------------------------


def test_an_event_is_the_order_with_our_part_beside_it() -> None:
    order = {
        "kind": "ClusterOrder",
        "metadata": {"name": "order-a", "namespace": "orders", "uid": "u"},
        "spec": {"templateID": "{{ evil }}"},
    }
    wanted = RunSpec("create-hosted-cluster", "", order=order, values={"manifests": ["{{ m }}"]})
    made = build_event(RUN, wanted, secret="s3cret", callback_url="http://door")
    ours = made.pop("boatyard")
    assert made == order
    assert "{{" not in json.dumps(ours)
    content = json.loads(base64.b64decode(ours["content"]))  # type: ignore[index]
    assert content["manifests"] == ["{{ m }}"]
    assert content["order"] == {"name": "order-a", "namespace": "orders", "uid": "u"}
    assert content["callback"] == {"url": "http://door/automation/runs/x", "secret": "s3cret"}
    assert content["run"]["action"] == "create-hosted-cluster"
