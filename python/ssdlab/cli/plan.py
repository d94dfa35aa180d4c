"""``ssdlab plan``: what to buy, simulated before it is bought."""

from __future__ import annotations

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of

if light.BODIES:
    from ssdlab.api.plan import plan_cache, plan_storage

app = typer.Typer(
    help="What to buy, simulated before it is bought.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("cache")
@of("plan_cache")
def for_pool(*, view: View, ask: Ask) -> None:
    """Says how long it took."""
    view.show(ask(plan_cache).answer, seconds=ask.seconds)


@app.command("storage")
@of("plan_storage")
def stores(*, view: View, ask: Ask) -> None:
    """Says how long it took."""
    view.show(ask(plan_storage).answer, seconds=ask.seconds)
