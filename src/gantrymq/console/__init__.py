"""The web console and its REST API: a page a subject, over the same calls that `gantry` makes.

    settings     where it listens, which clusters it shows, where it keeps its files
    clusters     the clusters by name, each with an open `Admin`
    api/         the REST API: typed questions and answers, one module a subject, no HTML
    sampling/    rates and lag over time, in rings of fixed size
    access/      who may come in: users, sessions, requests of other sites; the audit trail
    pages/       HTML pages: each asks functions of `api/` and fills a template
    texts/       every word of the pages, in English and Chinese
    console_metrics  what Prometheus reads of the console itself
    app          puts these together as one ASGI application
    serve        runs it on a port

A page uses only what the API offers: `pages/` imports no client, and `make check` holds it to that.
"""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.console.serve import ConsoleServer
    from gantrymq.console.settings import ClusterAddress, ConsoleSettings

__all__ = ["ClusterAddress", "ConsoleServer", "ConsoleSettings"]

_HOMES = {
    "gantrymq.console.serve": ("ConsoleServer",),
    "gantrymq.console.settings": ("ClusterAddress", "ConsoleSettings"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
