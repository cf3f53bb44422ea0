"""What the tests of the page stand on: a small trained model, the real server, and a real browser that is watched."""

import os
import re
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from forked import Forked
from playwright.sync_api import sync_playwright

from pointing.data import names
from pointing.demo import demo_settings
from pointing.training.loop import train

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "tests" / "frozen" / "softmax"
UPDATES = 300  # after which the small model copies names that it has never seen
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OFFLINE = ("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", *OFFLINE]
START = 60  # seconds that the server may take until it answers
SERVING = re.compile(r"serving .* on (http://\S+)")


def program():
    """The browser's path. Without one the tests are skipped, but never where all tests have to run."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        reason = f"THE PAGE IS NOT TESTED: there is none of {', '.join(PROGRAMS)} here (apt install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """A pointer softmax of `pointing demo`'s corpus, trained for some seconds."""
    folder = tmp_path_factory.mktemp("small")
    names.bring(folder / "data", train=20_000, dev=200, test=1)
    train(demo_settings(folder / "data", "pointer-softmax", UPDATES), folder / "corpus", folder / "small", False)
    return folder / "small"


@contextmanager
def serving(folder, *arguments):
    """The command `pointing serve`, with these arguments, in a process of its own; its address."""
    folder.mkdir(parents=True, exist_ok=True)
    messages = folder / "messages.txt"
    messages.write_text("")
    process = Forked("serve", *arguments, "--port", 0, cwd=ROOT, stdout=os.devnull, stderr=messages)
    try:
        yield _address(process, messages)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _address(process, messages):
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        text = messages.read_text()
        if found := SERVING.search(text):
            return found[1].rstrip(".,/")
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail(f"`pointing serve` does not serve:\n{messages.read_text()}")


@pytest.fixture(scope="session")
def address(browser, small_run, tmp_path_factory):  # first the browser: without one nothing is trained
    with serving(tmp_path_factory.mktemp("server"), small_run, "--against", BASELINE) as address:
        yield address


class Problems:
    """What the browser complained about, and parts of the complaints that a test provokes.

    The browser may tell of a complaint after the page shows its cause, so a test says beforehand what it expects.
    """

    def __init__(self):
        self.seen, self.expected = [], []

    @property
    def unexpected(self):
        return [problem for problem in self.seen if not any(part in problem for part in self.expected)]


@pytest.fixture
def problems():
    return Problems()


@pytest.fixture
def page(browser, address, problems):
    """The page, loaded. After the test the browser must have had no errors, and asked no other server for anything."""
    with watched_page(browser, address, problems) as page:
        page.goto(address)
        page.wait_for_selector("#output .word")
        yield page
    assert problems.unexpected == []


@contextmanager
def watched_page(browser, address, problems):
    """An empty page in a context of its own that writes errors and requests to other hosts down."""

    def on_request(request):
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data") and parts.netloc != urlsplit(address).netloc:
            problems.seen.append(f"a request to {request.url}")

    def on_console(message):
        if message.type in ("error", "warning"):
            problems.seen.append(message.text)

    context = browser.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.on("console", on_console)
    page.on("pageerror", lambda error: problems.seen.append(str(error)))
    page.on("request", on_request)
    yield page
    context.close()
