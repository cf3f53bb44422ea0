"""`pointing serve` on the command line: parse, call. Heavy imports wait until it is called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Folders of trained runs, one for each pair of languages.")],
    against: Annotated[Path | None, typer.Option(help="Another run that the page shows beside, to compare.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all, with API keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 5000,
    api_key_file: Annotated[
        Path | None, typer.Option(help="API keys, one a line (or one in the variable POINTING_API_KEY).")
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Off loopback, too, everybody may use it.")] = False,
    allow_host: Annotated[list[str] | None, typer.Option(help="A name by which this server is called.")] = None,
    cors: Annotated[list[str] | None, typer.Option(help="A site whose pages may ask, such as https://a.org.")] = None,
    rate_limit: Annotated[int | None, typer.Option(min=1, help="Requests a minute, of a key or an address.")] = None,
    max_batch: Annotated[int, typer.Option(min=1, help="Texts that are decoded together.")] = 64,
    queue: Annotated[int, typer.Option(min=1, help="Texts that may wait; more are answered by 503.")] = 1024,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for the answer to a request.")] = 30.0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
) -> None:
    """Serve runs on this machine: a page that shows the model point, an HTTP API, and LibreTranslate's interface."""
    from pointing.errors import missing_extra

    try:
        from pointing.server.limits import Limits
        from pointing.server.serve import read_keys
        from pointing.server.serve import serve as serve_runs
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("fastapi", "uvicorn", "starlette", "prometheus_client", "h11"):
            raise missing_extra(str(error.name), "serve") from None
        raise
    keys = [] if api_key_file is None else read_keys(api_key_file)
    if key := os.environ.get("POINTING_API_KEY", "").strip():
        keys.append(key)
    limits = Limits(batch=max_batch, waiting=queue, seconds=timeout, requests_a_minute=rate_limit)
    serve_runs(
        runs,
        against=against,
        host=host,
        port=port,
        keys=keys,
        no_auth=no_auth,
        hosts=allow_host or (),
        origins=cors or (),
        limits=limits,
        device=device,
    )
