"""One signed message to the operator's door about the run that a playbook carries out.

    boatyard_callback:
      callback: "{{ work.callback }}"   # as the event had it: url and secret
      body: {result: succeeded}         # without one it asks how the run stands
      statuses: [200]
    register: answer                    # answer.status, answer.json

The signature is HMAC-SHA256 with the run's secret over timestamp, a dot, and the body:

    X-Boatyard-Timestamp: <seconds since 1970>
    X-Boatyard-Signature: sha256=<hex>
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import ssl
import time
import urllib.error
import urllib.request

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

SECONDS = 25  # the door has twenty
PAUSES = (1, 2, 4, 8)


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(
            {
                "callback": {"type": "dict", "required": True, "no_log": True},
                "body": {"type": "raw"},
                "statuses": {"type": "list", "elements": "int", "default": [200]},
            }
        )
        status, answer = tell(args["callback"], args["body"])
        if status not in args["statuses"]:
            raise AnsibleActionFail(f"the operator's door answers {status}")
        return {"changed": args["body"] is not None, "status": status, "json": answer}


def tell(callback, body):
    data = b"" if body is None else json.dumps(body).encode()
    trust = ssl.create_default_context(cafile=os.environ.get("BOATYARD_CALLBACK_CA") or None)
    trouble = ""
    for pause in (*PAUSES, None):
        timestamp = str(int(time.time()))
        signed = timestamp.encode() + b"." + data
        signature = hmac.new(callback["secret"].encode(), signed, hashlib.sha256).hexdigest()
        request = urllib.request.Request(
            callback["url"],
            data=data or None,
            method="GET" if body is None else "POST",
            headers={
                "Content-Type": "application/json",
                "X-Boatyard-Timestamp": timestamp,
                "X-Boatyard-Signature": f"sha256={signature}",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS, context=trust) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            with error:
                if error.code < 500:
                    return error.code, {}
            trouble = f"answers {error.code}"
        except (urllib.error.URLError, OSError) as error:
            trouble = f"does not answer: {getattr(error, 'reason', error)}"
        if pause is not None:
            time.sleep(pause)
    raise AnsibleActionFail(f"the operator's door {trouble}")
