"""tools/slt as a module, and the servers that tests compare."""

import contextlib
import importlib.machinery
import importlib.util
import os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "slt")


def _load():
    loader = importlib.machinery.SourceFileLoader("slt", PATH)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("slt", loader))
    loader.exec_module(module)
    return module


slt = _load()


@contextlib.contextmanager
def cellar(program, layout="row", seal="auto", url=None):
    """The url of a Cellar: the given one, or that of a new server. An unclean end is an error."""
    if url:
        yield url
        return
    server = slt.Cellar(program, layout, seal)
    try:
        yield server.url
    finally:
        clean = server.stop()
    if not clean:
        raise SystemExit(1)


@contextlib.contextmanager
def postgres(url=None):
    """The url of a PostgreSQL: the given one, or that of a scratch cluster; None without any."""
    if url or not slt.Postgres.installed():
        yield url
        return
    server = slt.Postgres()
    try:
        yield server.url
    finally:
        server.stop()
