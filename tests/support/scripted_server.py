"""An API server that answers as it is told, for tests of the command line."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from boatyard.client import client as client_module
from boatyard.model.backoff import Backoff
from boatyard.model.wire import message, services

ID = "0190c0de-0000-7000-8000-000000000001"


class ScriptedServer(grpc.GenericRpcHandler):
    """Answers each method with a function of its request; keeps what was asked."""

    def __init__(self):
        self.asked = []
        self.answers = {}
        self.server = grpc.server(ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        service, _, method = details.method.removeprefix("/").partition("/")
        described = services()[service].methods_by_name[method]
        kinds = {
            "request_deserializer": message(described.input_type.full_name).FromString,
            "response_serializer": message(described.output_type.full_name).SerializeToString,
        }
        answer = message(described.output_type.full_name)
        short = f"{service.rpartition('.')[2]}/{method}"

        def call(request, context):
            self.asked.append((short, request))
            answer = self.answers.get(short)
            if answer is None:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{short} has no answer")
            return answer(request, context)

        if method in ("Watch", "Follow"):

            def stream(request, context):
                for fields in call(request, context):
                    yield answer(**fields)

            return grpc.unary_stream_rpc_method_handler(stream, **kinds)
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: answer(**(call(request, context) or {})), **kinds
        )

    def requests(self, short):
        return [request for method, request in self.asked if method == short]


@pytest.fixture
def scripted_server(tmp_path, monkeypatch):
    fake = ScriptedServer()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("BOATYARD_ADDRESS", fake.address)
    monkeypatch.setenv("BOATYARD_TOKEN", "a-token")
    monkeypatch.setattr(client_module, "_BACKOFF", Backoff(first=0.01, longest=5.0))
    monkeypatch.chdir(tmp_path)
    yield fake
    fake.server.stop(None).wait()


def cluster(name="web-1", **spec):
    return {
        "id": ID,
        "metadata": {"name": name, "tenant": "acme", "version": 3, "generation": 1},
        "spec": {
            "template": {"id": "small", "name": "small"},
            "node_sets": {"compute": {"size": 3}},
        }
        | spec,
        "status": {"state": 2, "ready_nodes": {"compute": 3}},
    }


def step(name, state, **fields):
    return {"name": name, "state": state} | fields


def explanation(state, *steps, **fields):
    return {
        "explanation": {"cluster": ID, "name": "web-1", "state": state, "steps": steps} | fields
    }


BUSY = explanation("PROGRESSING", step("hosts", 2))
DONE = explanation("READY", step("hosts", 4, detail="n1"))
FAILED = explanation(
    "FAILED",
    step("hosts", 5, message="no such host type", remedy="order another"),
    blocked_by="hosts",
)


def listing(*items):
    return lambda request, context: {"size": len(items), "total": len(items), "items": items}


def gone(**receipt):
    return {
        "explanation": {
            "cluster": ID,
            "name": "web-1",
            "state": "DELETING",
            "gone": True,
            "receipt": receipt or {"gone": [{"kind": "host", "name": "n1"}]},
        }
    }


@pytest.fixture
def ordering(scripted_server):
    """A server that takes an order and finishes it in two looks."""
    scripted_server.answers |= {
        "ClusterTemplates/List": listing({"id": "small", "metadata": {"name": "small"}}),
        "Clusters/Create": lambda request, context: {"object": cluster()},
        "Clusters/Get": lambda request, context: {"object": cluster()},
        "Clusters/List": listing(cluster()),
        "Clusters/Update": lambda request, context: {"object": cluster()},
        "Clusters/Delete": lambda request, context: {},
        "Orders/Explain": lambda request, context: DONE,
        "Orders/Follow": lambda request, context: [BUSY, DONE],
        "Orders/Retry": lambda request, context: {},
    }
    return scripted_server
