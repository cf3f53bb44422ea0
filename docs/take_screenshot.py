"""Takes a picture of the page of `pointing serve`, as docs/serving.png and docs/serving-demo.png were made.

    pointing serve runs/demo --against runs/demo-softmax
    python docs/take_screenshot.py http://127.0.0.1:5000 docs/serving-demo.png

    pointing serve runs/software-strings-en-fr
    python docs/take_screenshot.py http://127.0.0.1:5000 docs/serving.png --text "…" --word Zorblatt

Without a text it shows what the page shows by itself. It needs Debian's chromium, as `make browser` installs it.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import expect, sync_playwright


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--text")
    parser.add_argument("--glossary", default="")
    parser.add_argument("--keep", default="")
    parser.add_argument("--word", help="the output word to point at")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--whole", action="store_true", help="down to its end")
    parser.add_argument("--width", type=int, default=1100)
    parser.add_argument("--height", type=int, default=760)
    args = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(
            viewport={"width": args.width, "height": args.height},
            color_scheme="dark" if args.dark else "light",
            reduced_motion="reduce",
        )
        page.goto(args.address)
        page.wait_for_selector("#output .word")
        for field in ("glossary", "keep"):
            if terms := getattr(args, field):
                page.fill(f"#{field}", terms)
        if args.text is not None:
            page.fill("#text", args.text)
            expect(page.locator("#source")).to_have_text(args.text, timeout=60_000)
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(2000)  # the answer with the terms
        if args.word is not None:
            page.locator("#output .word", has_text=args.word).first.hover()
        page.screenshot(path=args.picture, full_page=args.whole)
        browser.close()


if __name__ == "__main__":
    main()
