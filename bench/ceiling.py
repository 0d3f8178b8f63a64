"""What the same PostgreSQL does without us: pgbench with comparable statements. Used by bench/api."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from report import table
from yard import Broken, Yard

from boatyard.ledger.embedded_postgres import find_binaries

CLIENTS = 8

# A document, its event and its work in one transaction: what a create writes, as plain inserts.
_INSERT = """\
with d as (
    insert into documents (kind, id, tenant, project, name, version, created, deleted, data)
    select 'Bench', gen_random_uuid()::text, tenant, '', gen_random_uuid()::text, 0, created, null, data
    from documents where kind = 'Cluster' and id = '{id}' returning id, tenant, data
), e as (
    insert into events (kind, id, tenant, type, at, reason, message, data)
    select 'Bench', id, tenant, 1, now(), 'Created', 'Created', data from d
)
insert into work (kind, id, tenant, hub, due) select 'Bench', id, tenant, '', now() from d;
"""
_SELECT = """\
\\set n random(0, {last})
select data from documents where kind = 'Cluster' and id = (array[{ids}])[:n + 1];
"""


async def measure(yard: Yard, ids: Sequence[str], *, seconds: float) -> dict[str, Any]:
    """Transactions per second of a read by key and of a create."""
    listed = ", ".join(f"'{id}'" for id in ids)
    scripts = {
        "read by key": _SELECT.format(last=len(ids) - 1, ids=listed),
        "create (document, event, work)": _INSERT.format(id=ids[0]),
    }
    found = {name: await _pgbench(yard, text, seconds) for name, text in scripts.items()}
    for kind in ("documents", "work"):
        await yard.sql(f"delete from {kind} where kind = 'Bench'")
    # In the publisher's own order: it is numbering these rows meanwhile.
    await yard.sql(
        "with mine as (select ord from events where kind = 'Bench' order by ord for update) "
        "delete from events where ord in (select ord from mine)"
    )
    table(
        f"The ceiling of the same PostgreSQL: pgbench, {CLIENTS} clients, prepared",
        ("statement", "per second", "mean ms"),
        [(name, one["rate"], one["mean"]) for name, one in found.items()],
    )
    return found


async def _pgbench(yard: Yard, script: str, seconds: float) -> dict[str, float]:
    path = yard.data / "pgbench.sql"
    path.write_text(script)
    command = [str(find_binaries() / "pgbench"), "--no-vacuum", "--protocol=prepared"]
    command += [f"--client={CLIENTS}", "--jobs=1", f"--time={max(3, round(2 * seconds))}"]
    process = await asyncio.create_subprocess_exec(
        *command,
        f"--file={path}",
        yard.url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    rate, mean = re.search(r"tps = ([\d.]+)", said), re.search(r"latency average = ([\d.]+)", said)
    if rate is None or mean is None:
        raise Broken(f"pgbench failed: {said[-1000:]}")
    return {"rate": float(rate[1]), "mean": float(mean[1])}
