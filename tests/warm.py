"""``ssdlab`` and ``python`` for scripts that start them often: what has loaded all modules forks.

Starting an interpreter that loads ssdlab takes longer than most of what an example asks for. What
is forked has the arguments, folder, environment and standard streams of whoever asks, and its exit
status goes back there.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLIENT = """#!{python} -IS
import os, socket, sys
import json
with socket.socket(socket.AF_UNIX) as way:
    way.connect({address!r})
    asked = json.dumps(["{name}", sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(way, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    way.sendall(asked)
    status = way.recv(1)
sys.exit(status[0] if status else "{name}: ended without a status")
"""


@contextmanager
def programs(folder: Path) -> Iterator[Path]:
    """A folder with the programs, for the PATH, while they are answered for."""
    address = str(folder / "socket")
    for name in ("ssdlab", "python"):
        place = folder / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(CLIENT.format(python=sys.executable, address=address, name=name))
        place.chmod(0o755)
    command = [sys.executable, __file__, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        try:
            yield folder / "bin"
        finally:
            server.terminate()


def load() -> None:
    """All that commands use; none of it may have begun a thread, which a fork would lose."""
    package = importlib.import_module("ssdlab.cli")
    for one in pkgutil.iter_modules(package.__path__, "ssdlab.cli."):
        importlib.import_module(one.name)
    assert threading.active_count() == 1
    # What all share shall be looked through by none of them, least of all as it leaves.
    gc.freeze()


def serve(address: str) -> None:
    """Forks for everybody who comes; returns in what was forked, and there alone."""
    children: list[int] = []
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        print("ready", flush=True)
        while True:
            way = door.accept()[0]
            if (child := os.fork()) == 0:
                break
            way.close()
            children = [one for one in [*children, child] if os.waitpid(one, os.WNOHANG)[0] == 0]
    answer(way)


def answer(way: socket.socket) -> None:
    """Does what was asked for, and says the status before it leaves."""
    head, streams, _, _ = socket.recv_fds(way, 8, 3)
    with way.makefile("rb") as rest:
        name, arguments, folder, environment = json.loads(rest.read(int.from_bytes(head, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [name, *arguments]
    status = 1
    try:
        if name == "ssdlab":
            importlib.import_module("ssdlab.cli").main()
        else:
            assert arguments[0] == "-c", arguments
            sys.path.insert(0, "")
            exec(arguments[1], {"__name__": "__main__"})
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
        raise
    finally:
        way.sendall(bytes([status]))


if __name__ == "__main__":
    load()
    serve(sys.argv[1])
