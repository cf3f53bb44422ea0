"""asyncio in a thread of its own: in that of the tests a browser's loop may run, whichever test came before."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run(coroutine):
    """What the coroutine returns."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
