"""Base classes of the tasks that request steps of the order."""

from __future__ import annotations

import os

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.boatyard.service.plugins.plugin_utils.asking import STEPS, Asking, Failed

NODE = ("slot", "node_set", "host", "address")
TEXTS = (
    *("cidr", "gateway", "api_address", "ingress_address"),
    *("api_name", "ingress_name", "api_url"),
)
KUBECONFIG = "kubeconfig"


class AskingAction(ActionBase):
    """A task that calls Boatyard. Failed becomes the failure of the task."""

    _requires_connection = False
    _supports_check_mode = True
    arguments = frozenset({"timeout"})

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        try:
            self._check_names()
            if self._task.check_mode:
                return {**result, "skipped": True, "msg": "nothing is asked for in check mode"}
            api = (task_vars or {}).get("boatyard_api")
            if not api:
                raise Failed(
                    "only tasks/install.yaml may ask for steps: elsewhere the plan decides"
                )
            return {**result, **self.asked(Asking(api, self._timeout()))}
        except Failed as failed:
            return {**result, "failed": True, "changed": False, "msg": str(failed)}

    def asked(self, requests):
        raise NotImplementedError

    def _check_names(self):
        unknown = sorted(set(self._task.args) - self.arguments)
        if unknown:
            offered = ", ".join(sorted(self.arguments))
            raise Failed(f"{unknown[0]}: there is no such argument; there is {offered}")

    def _timeout(self):
        timeout = self._task.args.get("timeout")
        if timeout is None:
            return None
        try:
            seconds = float(timeout)
        except (TypeError, ValueError):
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise Failed("timeout: a number of seconds is wanted")
        return seconds


class StepAction(AskingAction):
    """Requests one step, and waits for it unless `wait` is false."""

    arguments = frozenset({"timeout", "wait"})
    step = ""
    told = ()  # names of the facts that the task returns

    def asked(self, requests):
        wait = self._wait()
        changed = requests.ask(self.step)
        run = requests.wait([self.step]) if wait else requests.look()
        return {"changed": changed, **state_of(run, self.step), **self.facts(requests, run)}

    def facts(self, requests, run):
        facts = facts_of(run)
        return {name: facts[name] for name in self.told}

    def _wait(self):
        try:
            return boolean(self._task.args.get("wait", True))
        except TypeError:
            raise Failed("wait: true or false is wanted") from None


def state_of(run, name):
    step = next(candidate for candidate in run["steps"] if candidate["name"] == name)
    state = step.get("state", "").removeprefix("STEP_STATE_")
    return {"step": name, "state": state, "detail": step.get("detail", "")}


def facts_of(run):
    """The facts known so far; those not known yet are empty."""
    nodes = [{key: str(node.get(key, "")) for key in NODE} for node in run.get("nodes", ())]
    return {
        "nodes": nodes,
        **{name: str(run.get(name, "")) for name in TEXTS},
        "simulated": bool(run.get("simulated")),
    }


def write_kubeconfig(text):
    """Writes the kubeconfig to the run's own files, readable by nobody else. Returns its path."""
    folder = os.path.join(os.environ["HOME"], "files")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, KUBECONFIG)
    draft = f"{path}.{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(draft, path)
    return path


def known_steps(names):
    steps = [names] if isinstance(names, str) else names
    if not isinstance(steps, list) or not steps:
        raise Failed(f"steps: name at least one of {', '.join(STEPS)}")
    unknown = [str(step) for step in steps if step not in STEPS]
    if unknown:
        raise Failed(f"steps: {unknown[0]!r} is no step; there is {', '.join(STEPS)}")
    return [str(step) for step in steps]
