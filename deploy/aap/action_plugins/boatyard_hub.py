"""One request to the Kubernetes API of the hub, for the playbooks beside.

An action plugin, not `uri`: the hub's token stays in this process, while a module's arguments are kept with the job's
events; and it costs a twentieth of the time. It knows the hub as kubernetes.core does, by K8S_AUTH_HOST,
K8S_AUTH_API_KEY (or K8S_AUTH_API_KEY_FILE) and K8S_AUTH_SSL_CA_CERT, else by the service account of its pod.

    boatyard_hub:
      method: PATCH
      path: /apis/…
      query: {fieldManager: me}
      body: {…}                 # sent as JSON
      content_type: application/apply-patch+yaml
      statuses: [200, 404]      # what is fine; anything else fails
    register: answer            # answer.status, answer.json

A hub that does not answer, however often it is asked, fails the task with `unavailable` in its result.
"""

from __future__ import annotations

import json
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

SECONDS = 10
PAUSES = (
    1,
    2,
    4,
)  # after a busy or failing server; what the playbooks ask for may be asked for twice
UNKNOWN_FIELD = "field not declared in schema"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(
            {
                "method": {"type": "str", "default": "GET"},
                "path": {"type": "str", "required": True},
                "query": {"type": "dict", "default": {}},
                "body": {"type": "raw"},
                "content_type": {"type": "str", "default": "application/json"},
                "statuses": {"type": "list", "elements": "int", "default": [200, 201, 202]},
            }
        )
        status, answer = ask(
            args["method"], args["path"], args["query"], args["body"], args["content_type"]
        )
        if status not in args["statuses"]:
            said = answer.get("message") or answer.get("reason") or "no reason given"
            raise AnsibleActionFail(
                f"{args['method']} {args['path']}: the hub answers {status}: {said}"
            )
        return {"changed": args["method"] != "GET", "status": status, "json": answer}


def ask(method, path, query, body, content_type):
    """The status and what was said. Raises when the hub does not answer, however often it is asked."""
    host, token, trust = hub()
    address = f"{host}{path}"
    if query:
        address += "?" + urllib.parse.urlencode(query)
    data = None if body is None else json.dumps(body).encode()
    headers = {"Accept": "application/json", "Content-Type": content_type}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    trouble = ""
    for pause in (*PAUSES, None):
        request = urllib.request.Request(address, data=data, headers=headers, method=method)
        try:
            with opener(trust).open(request, timeout=SECONDS) as answer:
                return answer.status, read(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = read(error)
            # An apply with a field that the kind does not have is answered with 500 as well, for ever.
            foreseen = error.code != 429 and error.code < 500
            if foreseen or UNKNOWN_FIELD in str(said.get("message")):
                return error.code, said
            trouble = f"the hub answers {error.code}: {said.get('message') or error.reason}"
        except (urllib.error.URLError, OSError) as error:
            trouble = f"the hub does not answer: {getattr(error, 'reason', error)}"
        if pause is not None:
            time.sleep(pause)
    raise AnsibleActionFail(f"{method} {path}: {trouble}", result={"unavailable": True})


def opener(trust):
    """Without proxies and redirects: the token goes to the hub and nowhere else."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}), Stay, urllib.request.HTTPSHandler(context=trust)
    )


def read(answer):
    try:
        found = json.loads(answer.read() or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def hub():
    """Address, token and trust."""
    host = os.environ.get("K8S_AUTH_HOST", "").rstrip("/")
    token = os.environ.get("K8S_AUTH_API_KEY", "")
    token_file = os.environ.get("K8S_AUTH_API_KEY_FILE", "")
    authority = os.environ.get("K8S_AUTH_SSL_CA_CERT", "")
    if not host and os.environ.get("KUBERNETES_SERVICE_HOST"):
        name, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        host = f"https://[{name}]:{port}" if ":" in name else f"https://{name}:{port}"
        token_file = token_file or str(ACCOUNT / "token")
        authority = authority or str(ACCOUNT / "ca.crt")
    if not host:
        raise AnsibleActionFail("K8S_AUTH_HOST is not set: give the address of the hub")
    if not token and token_file:
        token = Path(token_file).read_text().strip()
    trust = ssl.create_default_context(cafile=authority or None)
    if os.environ.get("K8S_AUTH_VERIFY_SSL", "").lower() in ("false", "no", "0"):
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    return host, token, trust
