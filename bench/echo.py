"""The yardstick of bench/api: an empty grpc.aio server that answers Clusters calls with the same messages.

`python echo.py` reads one line from its input, a JSON object from call to answer (hex), says its
address, and serves until it is told to end. It knows no tokens, no rules and no database.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

import grpc

from boatyard.model.wire import message, services

SERVICE = "osac.public.v1.Clusters"


def _handler(name: str, answer: Any) -> Any:
    """Reads the request, and answers what it was given at the start; a write answers what was sent."""
    described = services()[SERVICE].methods_by_name[name]
    request = message(described.input_type.full_name)
    response = message(described.output_type.full_name)

    async def handle(asked: Any, context: Any) -> Any:
        return response(object=asked.object) if name in ("Create", "Update") else answer

    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request.FromString,
        response_serializer=response.SerializeToString,
    )


async def main() -> None:
    answers = json.loads(sys.stdin.readline())
    handlers = {}
    for name in ("Get", "List", "Create", "Update"):
        output = services()[SERVICE].methods_by_name[name].output_type.full_name
        handlers[name] = _handler(
            name, message(output).FromString(bytes.fromhex(answers.get(name, "")))
        )
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    await server.stop(1.0)


if __name__ == "__main__":
    asyncio.run(main())
