"""``ssdlab plan``: what to buy, simulated before it is bought."""

from __future__ import annotations

import typer

from ssdlab.cli import plan_cache, plan_storage

app = typer.Typer(
    help="What to buy, simulated before it is bought.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("cache")(plan_cache.command)
app.command("storage")(plan_storage.command)
