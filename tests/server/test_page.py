"""The page in a real browser, on a real server with a small model that copies names it has never seen."""

import json
import shutil

import browser as helpers
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import BASELINE, serving, watched_page
from here import POINTER
from playwright.sync_api import expect

browser, small_run, address = helpers.browser, helpers.small_run, helpers.address  # fixtures
problems, page = helpers.problems, helpers.page

SENTENCE = "please install zorblatt on hal9000"
LIBRARY = "a fast library for zorblatt was written by Guybrush"
SCRIPT = "<img src=x onerror=window.hacked=1>"
CATALOG = """msgid ""
msgstr ""
"Language: fr\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "please install zorblatt on hal9000"
msgstr ""
"""
DROP = """([files, target]) => {
    const transfer = new DataTransfer();
    for (const [name, text] of files) transfer.items.add(new File([text], name));
    const zone = document.querySelector(target);
    for (const kind of ["dragover", "drop"]) {
        zone.dispatchEvent(new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));
    }
}"""


def write(page, text, glossary="", keep=""):
    """Fills the fields, and waits until the figure shows this text with these terms."""
    page.fill("#glossary", glossary)
    page.fill("#keep", keep)
    page.fill("#text", "")
    page.wait_for_selector("#result", state="hidden")
    page.fill("#text", text)
    page.wait_for_selector("#result", state="visible")
    assert page.locator("#source").inner_text() == text


def word(page, text):
    """The button of an output word."""
    return page.locator("#output .word", has=page.get_by_text(text, exact=True))


def output_text(page):
    return page.locator("#output").inner_text().replace("\n", "")


def drop(page, *files, target="#drop"):
    page.evaluate(DROP, [files, target])


def downloaded(page, link):
    with page.expect_download() as download:
        link.click()
    return download.value.suggested_filename, download.value.path().read_text(encoding="utf-8")


def answer(text, tokens, source):
    """An answer of the server, made by hand: tokens are (text, origin, source position, its characters)."""
    words, at = [], 0
    for token, origin, position, span in tokens:
        start = text.index(token, at)
        at = start + len(token)
        place = {"source": position, "span": span, "output": [start, at]}
        words.append({"text": token, "origin": origin, **place, "probability": 0.5, "shortlist": 0.5})
    output = {"line": 1, "text": text, "score": -1.0, "tokens": words, "alternatives": [], "source": source}
    return json.dumps({"run": "by hand", "outputs": [output]})


def test_a_name_that_the_model_has_never_seen_is_copied_and_marked(page):
    write(page, SENTENCE)
    assert output_text(page) == "veuillez installer zorblatt sur hal9000"
    assert word(page, "zorblatt").get_attribute("data-origin") == "copied"
    assert "copied" in word(page, "zorblatt").get_attribute("class").split()
    assert word(page, "sur").get_attribute("data-origin") == "shortlist"
    assert "copied from “zorblatt”, characters 15–23" in word(page, "zorblatt").get_attribute("aria-description")
    assert page.locator("#source .used").all_inner_texts() == ["zorblatt", "hal9000"]
    assert page.locator("#announcement").inner_text() == "veuillez installer zorblatt sur hal9000"


def test_a_curve_goes_from_each_copied_word_to_its_place_in_the_source(page):
    write(page, SENTENCE)
    assert page.locator("svg .curve.copied").count() == 2
    ends = page.evaluate("""() => {
        const path = document.querySelector("svg .curve"), length = path.getTotalLength();
        const box = document.querySelector("#figure").getBoundingClientRect();
        const middle = (selector) => {
            const word = document.querySelector(selector).getBoundingClientRect();
            return word.left + word.width / 2 - box.left;
        };
        const words = [middle("#source .used"), middle("#output .copied")];
        return [path.getPointAtLength(0).x, path.getPointAtLength(length).x].map((x, index) => x - words[index]);
    }""")
    assert all(abs(distance) < 3 for distance in ends)


def test_curves_are_drawn_again_when_the_window_changes(page):
    write(page, SENTENCE)
    before = page.locator("svg .curve").first.get_attribute("d")
    page.set_viewport_size({"width": 500, "height": 900})
    expect(page.locator("svg .curve").first).not_to_have_attribute("d", before)


def test_hovering_over_a_word_shows_where_it_came_from_and_where_the_model_looked(page):
    write(page, SENTENCE)
    word(page, "hal9000").hover()
    details = page.locator("#details")
    assert "copied from “hal9000”, characters 27–34" in details.inner_text()
    assert "Probability" in details.inner_text()
    assert "Switch dt" in details.inner_text().replace("\n", "")
    assert details.locator(".choices tbody tr").first.locator("th").inner_text() == "hal9000"
    assert page.locator("#source .lit").all_inner_texts() == ["hal9000"]
    weights = page.eval_on_selector_all(
        "#source span", "all => all.map(e => Number(e.style.getPropertyValue('--light')))"
    )
    assert max(weights) == weights[-1] > 0.5
    page.mouse.move(0, 0)
    assert "Point at a word" in details.inner_text()
    assert page.locator("#source .lit").count() == 0


def test_the_switch_is_low_over_copied_words_and_high_over_others(page):
    write(page, SENTENCE)
    heights = page.eval_on_selector_all("#output .level", "all => all.map(e => parseFloat(e.style.height))")
    assert [height > 50 for height in heights] == [True, True, False, True, False]


def test_attention_is_a_table_of_output_words_and_source_words(page):
    write(page, SENTENCE)
    table = page.locator("#heat-map table")
    assert table.locator("thead th").all_inner_texts() == SENTENCE.split()
    assert table.locator("tbody th").all_inner_texts() == ["veuillez", "installer", "zorblatt", "sur", "hal9000"]
    assert table.locator("td.target").count() == 2


def test_a_term_of_the_glossary_is_written_and_marked(page):
    write(page, LIBRARY, glossary="library = bouquinerie")
    assert "bouquinerie" in output_text(page)
    assert word(page, "bouquinerie").first.get_attribute("data-origin") == "glossary"
    assert page.locator("svg .curve.glossary").count() >= 1
    word(page, "bouquinerie").first.hover()
    assert "your glossary’s term for “library”" in page.locator("#details").inner_text()


def test_a_line_of_the_glossary_that_is_not_understood_is_named(page):
    page.fill("#glossary", "library = bouquinerie\nhalf a line")
    page.get_by_text("Line 2 is not “term = translation” yet.").wait_for()


def test_a_kept_word_stays_and_has_the_colour_of_terms(page):
    write(page, LIBRARY, keep="Library")
    assert word(page, "library").first.get_attribute("data-origin") == "copied"
    assert "kept" in word(page, "library").first.get_attribute("class").split()


def test_the_model_without_pointing_stands_beside(page):
    write(page, SENTENCE)
    sides = page.locator("#pair article")
    assert [heading.split()[0] for heading in sides.locator("h3").all_inner_texts()] == ["small", BASELINE.name]
    assert sides.nth(0).locator(".copied").all_inner_texts() == ["zorblatt", "hal9000"]
    assert sides.nth(1).locator(".copied").count() == 0
    assert sides.nth(1).locator("mark.unknown").count() >= 1  # where the names would be
    assert sides.nth(1).locator(".lost").all_inner_texts() == ["zorblatt", "hal9000"]


def test_an_unknown_word_is_marked_as_one(page):
    source = {"text": "a b", "tokens": [{"text": "a", "span": [0, 1]}, {"text": "b", "span": [2, 3]}]}
    body = answer("un <unk>", [("un", "shortlist", None, None), ("<unk>", "shortlist", None, None)], source)
    page.route("**/generate", lambda route: route.fulfill(body=body, content_type="application/json"))
    write(page, "a b")
    assert page.locator("#pair article").nth(1).locator("mark.unknown").all_inner_texts() == ["<unk>"]


def test_places_are_counted_in_characters_also_after_an_emoji(page):
    source = {"text": "😀 zorb 😀", "tokens": [{"text": "😀", "span": [0, 1]}, {"text": "zorb", "span": [2, 6]}]}
    body = answer("😀😀 zorb", [("😀😀", "shortlist", None, None), ("zorb", "copied", 1, [2, 6])], source)
    page.route("**/generate", lambda route: route.fulfill(body=body, content_type="application/json"))
    write(page, "😀 zorb 😀")
    assert page.locator("#output .word-text").all_inner_texts() == ["😀😀", "zorb"]
    assert page.locator("#source .used").all_inner_texts() == ["zorb"]
    assert "“zorb”, characters 2–6" in word(page, "zorb").get_attribute("aria-description")


def test_choosing_another_output_shows_it_in_the_figure(page):
    write(page, SENTENCE)
    choices = page.locator("#hypotheses label")
    assert choices.count() == 5
    other = choices.nth(1).locator(".text").inner_text()
    assert other != output_text(page)
    choices.nth(1).click()
    assert output_text(page) == other


def test_an_example_is_drawn_and_never_the_same_twice_in_a_row(page):
    before = page.locator("#text").input_value()
    for _ in range(4):
        page.click("#example")
        now = page.locator("#text").input_value()
        assert now != before
        before = now
    expect(page.locator("#source")).to_have_text(before)


def test_only_the_last_of_several_texts_is_shown(page):
    page.locator("#text").fill("")
    page.locator("#text").press_sequentially(SENTENCE, delay=15)
    expect(page.locator("#source")).to_have_text(SENTENCE)
    assert output_text(page) == "veuillez installer zorblatt sur hal9000"


def test_of_several_lines_the_one_of_the_caret_is_shown(page):
    page.fill("#text", f"{SENTENCE}\nopen my.conf with emacs29")
    expect(page.locator("#source")).to_contain_text("my.conf")
    assert "Line 2 of 2" in page.locator("#status").inner_text()
    page.locator("#text").press("ArrowUp")
    expect(page.locator("#source")).to_contain_text("zorblatt")


def test_a_catalog_and_a_text_are_dropped_translated_and_downloaded(page):
    drop(page, ("fr.po", CATALOG), ("notes.txt", "open my.conf with emacs29\n"))
    items = page.locator("#file-list li")
    items.nth(1).locator(".downloads").wait_for()
    assert "1 filled" in items.nth(0).inner_text()
    assert "2 copied names" in items.nth(0).inner_text()
    name, text = downloaded(page, items.nth(0).locator("a").first)
    assert name.endswith(".po")
    assert 'msgstr "veuillez installer zorblatt sur hal9000"' in text
    name, text = downloaded(page, items.nth(0).locator("a").nth(1))
    assert name == "review.html"
    assert "zorblatt" in text
    _, text = downloaded(page, items.nth(1).locator("a").first)
    assert "my.conf avec emacs29" in text


def test_a_file_that_is_chosen_and_cannot_be_read_says_why_in_its_place(page, problems):
    problems.expected.append("status of 4")  # the browser's word about the refusal
    page.set_input_files("#file", [{"name": "a.png", "mimeType": "image/png", "buffer": b"\x89PNG\xff"}])
    page.locator("#file-list .failed").wait_for()
    assert len(page.locator("#file-list .failed").inner_text()) > 10


def test_a_file_that_is_dropped_beside_the_zone_does_not_replace_the_page(page):
    drop(page, ("notes.txt", "open my.conf with emacs29\n"), target="h1")
    page.locator("#file-list .downloads").wait_for()


def test_text_is_never_read_as_html(page, problems):
    problems.expected.append("the server responded with a status of 4")
    write(page, SENTENCE, glossary=f"please = {SCRIPT}")
    assert SCRIPT in page.locator("#output").inner_text()
    write(page, f"please install {SCRIPT} on hal9000")
    word(page, "hal9000").first.hover()
    drop(page, (f"{SCRIPT}.txt", f"{SCRIPT}\n"), ("<script>hacked=1</script>.bad", "x"))
    page.locator("#file-list .downloads, #file-list .failed").nth(1).wait_for()
    assert page.locator(".file-name").first.inner_text() == f"{SCRIPT}.txt"
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_nothing_that_the_server_answers_is_read_as_html(page, problems):
    """A word may be a whole tag where tags are protected; so it is here, in every place that shows words."""
    problems.expected.append("status of 422")
    place = [0, len(SCRIPT)]
    source = {"text": SCRIPT, "tokens": [{"text": SCRIPT, "span": place}]}
    body = json.loads(answer(SCRIPT, [(SCRIPT, "copied", 0, place)], source))
    (output,) = body["outputs"]
    output["warning"] = SCRIPT
    choice = {"text": SCRIPT, "origin": "copied", "source": 0, "probability": 0.5}
    output["tokens"][0] |= {"choices": [choice], "location": [1.0]}
    output["alternatives"] = [{**output, "alternatives": []}]
    page.route("**/generate", lambda route: route.fulfill(json=body))
    write(page, SCRIPT)
    word(page, SCRIPT).first.hover()
    for place in ("#source", "#output", "#remarks", "#details", "#pair", "#hypotheses", "#heat-map"):
        assert SCRIPT in page.locator(place).inner_text(), place
    page.route("**/generate", lambda route: route.fulfill(status=422, json={"error": SCRIPT}))
    page.fill("#text", "x")
    page.locator("#status", has_text=SCRIPT).wait_for()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_a_busy_server_is_asked_once_more(page, problems):
    problems.expected.append("status of 503")
    busy = []

    def answer_later(route):
        if busy:
            return route.continue_()
        busy.append(route.request.url)
        return route.fulfill(status=503, headers={"Retry-After": "0.3"}, json={"error": "busy"})

    page.route("**/generate", answer_later)
    page.fill("#text", SENTENCE)
    page.get_by_text("The server is busy, trying again").wait_for()
    expect(page.locator("#source")).to_have_text(SENTENCE)
    assert page.locator("#status").inner_text() == ""


def test_an_error_of_the_server_is_shown(page, problems):
    problems.expected.append("status of 422")
    page.route("**/generate", lambda route: route.fulfill(status=422, json={"error": "This text is too long."}))
    page.fill("#text", SENTENCE)
    page.locator("#status", has_text="This text is too long.").wait_for()


@pytest.mark.parametrize("text", [SENTENCE, "a" * 300], ids=["a sentence", "a very long word"])
def test_a_narrow_screen_needs_no_sideways_scrolling(page, text):
    page.set_viewport_size({"width": 360, "height": 740})
    write(page, text)
    word_of_any_kind = page.locator("#output .word").first
    if word_of_any_kind.count():
        word_of_any_kind.hover()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_keyboard_alone_reaches_everything(page):
    def tab_to(selector):
        for _ in range(12):
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
            page.keyboard.press("Tab")
        pytest.fail(f"the Tab key does not reach {selector}")

    tab_to("#example")
    page.keyboard.press("Enter")
    tab_to("#text")
    page.keyboard.press("Control+A")
    page.keyboard.type(SENTENCE)
    expect(page.locator("#source")).to_have_text(SENTENCE)
    tab_to("#output .word")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert "copied from “zorblatt”" in page.locator("#details").inner_text()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("End")
    assert "copied from “hal9000”" in page.locator("#details").inner_text()
    page.keyboard.press("Tab")
    assert "Point at a word" in page.locator("#details").inner_text()
    tab_to("#glossary")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_people_with_disabilities(page, scheme):
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    write(page, LIBRARY, glossary="library = bouquinerie\nhalf", keep="fast")
    drop(page, ("fr.po", CATALOG))
    page.locator("#file-list .downloads").wait_for()
    page.locator("#output .word").first.hover()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert max(ground) < 60 if scheme == "dark" else min(ground) > 200
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    for field in ("Text", "Glossary", "Kept words"):  # to axe a placeholder would do
        expect(page.get_by_role("textbox", name=field, exact=True)).to_be_visible()
    expect(page.get_by_label("Drop files here, or choose them", exact=True)).to_be_visible()


def test_a_word_that_is_clicked_stays_lit_until_escape(page):
    write(page, SENTENCE)
    word(page, "zorblatt").click()
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    assert word(page, "zorblatt").get_attribute("aria-pressed") == "true"
    assert "copied from “zorblatt”" in page.locator("#details").inner_text()
    word(page, "zorblatt").focus()
    page.keyboard.press("Escape")
    assert "Point at a word" in page.locator("#details").inner_text()


def test_a_row_of_the_table_of_attention_lights_its_word(page):
    write(page, SENTENCE)
    page.locator("#heat-map tbody tr").nth(4).hover()
    assert page.locator("#output .lit").inner_text().strip() == "hal9000"
    assert page.locator("#source .lit").all_inner_texts() == ["hal9000"]


def test_everything_at_once_fits_a_narrow_screen(page, problems):
    problems.expected.append("status of 400")
    page.set_viewport_size({"width": 320, "height": 700})
    write(page, LIBRARY, glossary=f"library = {'bouquinerie' * 9}\n{'half' * 30}", keep="fast")
    drop(page, ("a-long-name-" * 20 + ".txt", "open my.conf with emacs29\n"), ("x" * 200 + ".png", "x"))
    page.locator("#file-list .downloads").wait_for()
    page.locator("#file-list .failed").wait_for()
    page.locator("#output .word").first.hover()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert Axe().run(page).violations_count == 0


def test_the_description_of_the_api_is_for_everybody_too(page, address):
    page.goto(f"{address}/docs")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_of_several_runs_one_is_chosen(browser, small_run, tmp_path, problems):
    german = tmp_path / "german"
    shutil.copytree(POINTER, german)
    config = german / "config.yaml"
    config.write_text(config.read_text().replace("  - en\n  - fr\n", "  - en\n  - de\n"))
    with serving(tmp_path / "server", small_run, german) as address, watched_page(browser, address, problems) as page:
        page.goto(address)
        page.wait_for_selector("#output .word")
        choice = page.get_by_role("combobox", name="Model")
        assert choice.locator("option").all_inner_texts() == ["en → fr (small)", "en → de (german)"]
        with page.expect_request("**/generate") as asked:
            choice.select_option("german")
        assert asked.value.post_data_json["run"] == "german"
        expect(page.locator("#output")).to_have_attribute("lang", "de")
        assert Axe().run(page).violations_count == 0
    assert problems.unexpected == []


def test_a_run_that_cannot_point_takes_no_terms(browser, tmp_path, problems):
    with serving(tmp_path / "server", BASELINE) as address, watched_page(browser, address, problems) as page:
        page.goto(address)
        page.fill("#text", SENTENCE)
        page.wait_for_selector("#output .word")
        for name in ("Glossary", "Kept words"):
            expect(page.get_by_role("textbox", name=name, exact=True)).to_be_disabled()
        expect(page.get_by_text("This model cannot point, so it takes no terms.")).to_be_visible()
        assert page.locator("svg .curve").count() == 0
    assert problems.unexpected == []


def test_a_server_with_a_key_is_asked_with_it(browser, small_run, tmp_path, problems):
    (tmp_path / "key").write_text("a-long-secret-of-the-house\n")
    with (
        serving(tmp_path / "server", small_run, "--api-key-file", tmp_path / "key") as address,
        watched_page(browser, address, problems) as page,
    ):
        page.goto(address)
        for key in ("wrong", "a-long-secret-of-the-house"):
            page.get_by_role("dialog", name="API key").wait_for()
            assert Axe().run(page).violations_count == 0
            page.get_by_label("Key", exact=True).fill(key)
            page.keyboard.press("Enter")
        page.wait_for_selector("#output .word")
        page.reload()
        page.wait_for_selector("#output .word")  # without asking again
    problems.expected.append("status of 401")
    assert problems.unexpected == []
