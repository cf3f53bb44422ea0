"""PO files: what is read, what is written, and that nothing else in the file changes."""

import shutil
import subprocess
from pathlib import Path

import polib
import pytest
from standin import PROTECT, SEARCH, StandIn

from pointing.documents.document import Fill
from pointing.documents.po import Po
from pointing.errors import Misuse
from pointing.translation.filling import Filler, provenance

PATH = Path("app.po")
HEADER = (
    'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
)
HEADER += '"Content-Transfer-Encoding: 8bit\\n"\n"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n'
TEMPLATE = r"""# A title.
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: app 1.0\n"
"PO-Revision-Date: YEAR-MO-DA HO:MI+ZONE\n"
"Last-Translator: FULL NAME <EMAIL@ADDRESS>\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=CHARSET\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#. For people
#: a.c:1
#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "open"
msgstr ""
"""


def read(text, language="fr", path=PATH):
    return Po(path, text if isinstance(text, bytes) else text.encode(), language)


def filled(text, language="fr", *, every=False, fuzzy=True, comments=False, translator=None, path=PATH):
    """The file as text after it was translated into capitals, and what became of each unit."""
    document = read(text, language, path)
    results = Filler(translator or StandIn(), SEARCH, PROTECT).results(
        document, lambda unit: every or unit.state == "empty"
    )
    fills = {
        result.unit.number: Fill(result.texts, provenance(result) if comments else None)
        for result in results
        if result.status == "filled"
    }
    return document.raw.encoding, document.written(fills, fuzzy), results


def text_of(*arguments, **options):
    encoding, data, _ = filled(*arguments, **options)
    return data.decode(encoding)


def test_an_entry_is_filled_and_marked_and_nothing_else_changes():
    before = "# Mine.\n#  Spaces   kept\n#. theirs\n#: b.c:2 a.c:1\n#, c-format\n"
    before += '#| msgid "old"\nmsgctxt "menu"\nmsgid "a %s"\n'
    rest = '\nmsgid "done"\nmsgstr "fait"\n\n#~| msgid "older"\n#~ msgid "old"\n#~ msgstr "vieux"\n\n# the end\n'
    expected = before.replace('#, c-format\n#| msgid "old"\n', "#, fuzzy, c-format\n") + 'msgstr "A %s"\n' + rest
    assert text_of(HEADER + before + 'msgstr ""\n' + rest) == HEADER + expected


def test_nothing_to_fill_gives_the_same_bytes():
    text = '  msgid   "a"\nmsgstr "b" "c"\n# odd \\q\nmsgid "bell \\a\\033 \\x41"\nmsgstr "\\a"\n'
    document = read(text)
    assert document.written({}, True) == text.encode()
    assert [entry.text("msgid") for entry in document.entries] == ["a", "bell \a\033 A"]


def test_no_fuzzy_and_a_fuzzy_entry_translated_anew():
    old = '#, fuzzy, c-format\n#| msgid "x"\nmsgid "a"\nmsgstr "x"\n\n#, fuzzy\nmsgid "b"\nmsgstr "y"\n'
    assert text_of(HEADER + old) == HEADER + old  # fuzzy ones are left
    new = text_of(HEADER + old, every=True, fuzzy=False)
    assert new == HEADER + '#, c-format\nmsgid "a"\nmsgstr "A"\n\nmsgid "b"\nmsgstr "B"\n'


def test_a_template_gets_a_header_in_its_language():
    text = text_of(TEMPLATE, path=Path("app.pot"))
    assert text.startswith('# A title.\nmsgid ""\n')  # not fuzzy any more
    fields = polib.pofile(text).metadata
    assert fields["Language"] == "fr"
    assert fields["Plural-Forms"] == "nplurals=2; plural=(n > 1);"
    assert fields["Content-Type"] == "text/plain; charset=UTF-8"
    assert fields["Last-Translator"] == "FULL NAME <EMAIL@ADDRESS>"
    assert "YEAR" not in fields["PO-Revision-Date"]


def test_a_missing_header_is_written():
    text = text_of('# a comment\nmsgid "a"\nmsgstr ""\n')
    assert text.endswith('\n\n# a comment\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n')
    assert polib.pofile(text).metadata["Language"] == "fr"
    assert "Plural-Forms" not in text


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("fr", ["%D FILE", "%D FILES"]),
        ("ja", ["%D FILES"]),
        ("ru", ["%D FILE", "%D FILES", "%D FILES"]),
        ("pt_BR", ["%D FILE", "%D FILES"]),
        ("ar", ["%D FILES", "%D FILE", "%D FILES", "%D FILES", "%D FILES", "%D FILES"]),
    ],
)
def test_a_plural_has_all_forms_of_the_language(language, forms):
    _, data, results = filled(TEMPLATE, language, path=Path("app.pot"))
    assert list(results[0].texts) == [form.replace("%D", "%d") for form in forms]
    assert data.decode().count("msgstr[") == len(forms)


def test_a_singular_without_its_number_serves_only_a_form_for_few_numbers():
    text = TEMPLATE.replace('msgid "%d file"', 'msgid "one file"')
    assert filled(text, "fr")[2][0].texts == ("ONE FILE", "%d FILES")
    assert filled(text, "ru")[2][0].texts == ("%d FILES",) * 3  # 1, 21, 31, …: msgfmt wants the number


@pytest.mark.parametrize(
    "header",
    [
        *("nplurals=0; plural=0;", "nplurals=2; plural=n;", "nplurals=2; plural=(n", "nplurals=99; plural=0;"),
        *("nonsense", "nplurals=2; plural=n/0;", f"nplurals=2; plural={'(' * 5000}n{')' * 5000};"),
    ],
)
def test_a_wrong_plural_header_is_kept_and_plurals_are_left(header):
    text = TEMPLATE.replace("nplurals=INTEGER; plural=EXPRESSION;", header)
    _, data, results = filled(text)
    assert [result.status for result in results] == ["failed", "filled"]
    assert "Plural-Forms" in results[0].reason
    assert header in data.decode()


def test_an_unknown_language_leaves_plurals():
    results = filled(TEMPLATE, "tlh")[2]
    assert [result.status for result in results] == ["failed", "filled"]
    assert "not in our table" in results[0].reason


def test_forms_that_somebody_wrote_stay():
    text = HEADER + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "mine"\nmsgstr[1] ""\n'
    assert filled(text)[2][0].texts == ("mine", "B")


def test_lines_and_white_space_are_kept():
    message = r"\n  first line \n\n\tsecond\t%s\n"
    text = text_of(HEADER + f'msgid "{message}"\nmsgstr ""\n')
    assert polib.pofile(text)[0].msgstr == "\n  FIRST LINE \n\n\tSECOND\t%s\n"


def test_line_ends_of_windows_and_a_byte_order_mark_are_kept():
    text = (HEADER + 'msgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgstr "c"').replace("\n", "\r\n").encode()
    data = filled(b"\xef\xbb\xbf" + text)[1]
    assert data.startswith(b'\xef\xbb\xbfmsgid ""\r\n')
    assert data.replace(b"\r\n", b"").count(b"\n") == 0
    assert data.endswith(b'#, fuzzy\r\nmsgid "a"\r\nmsgstr "A"\r\n\r\nmsgid "b"\r\nmsgstr "c"')


def test_the_last_line_may_have_no_end():
    assert text_of(HEADER + 'msgid "a"\nmsgstr ""').endswith('#, fuzzy\nmsgid "a"\nmsgstr "A"')


def test_the_headers_encoding_is_read_and_written():
    header = HEADER.replace("UTF-8", "ISO-8859-1")
    text = (header + 'msgid "é"\nmsgstr "è"\n\nmsgid "château"\nmsgstr ""\n').encode("latin-1")
    encoding, data, _ = filled(text)
    assert encoding == "ISO-8859-1"
    assert data.startswith(text[: text.index(b'msgid "ch')])
    assert "CHÂTEAU" in data.decode("latin-1")


def test_a_translation_that_the_encoding_lacks_gives_way():
    header = HEADER.replace("UTF-8", "ISO-8859-1")
    translator = StandIn(lambda line: ["œuf", "oeuf"] if line == "egg" else ["œ"])
    text = (header + 'msgid "egg"\nmsgstr ""\n\nmsgid "o"\nmsgstr ""\n').encode()
    results = filled(text, translator=translator)[2]
    assert results[0].texts == ("oeuf",)
    assert results[1].status == "failed"
    assert "ISO-8859-1 lacks" in results[1].reason


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HEADER.replace("UTF-8", "KLINGON").encode(), r"app.po: no encoding 'KLINGON'"),
        (HEADER.replace("UTF-8", "UTF-16").encode(), r"app.po:\d+: not UTF-16|app.po: the header names UTF-16"),
        (HEADER.encode() + b'msgid "\xe9"\nmsgstr ""\n', r"app.po:9: not UTF-8, which its header names"),
        (HEADER.encode() + b'msgid "a\0"\nmsgstr ""\n', r"app.po:9: there is a NUL"),
        (b'msgid "a\nmsgstr ""\n', r"app.po:1: a string without an end"),
        (b'msgid "a"\n\nmsgid "b"\nmsgstr ""\n', r"app.po:3: msgid for the second time"),
        (b'msgid "a"\n', r"app.po:1: an entry without msgstr"),
        (b'msgstr "a"\n', r"app.po:1: msgstr without msgid"),
        (b'"a"\n', r"app.po:1: a string without msgid"),
        (b'msgid "a"\nmsgstr "b"\nfoo\n', r"app.po:3: this is not PO: 'foo'"),
        (b'msgid "a" x\nmsgstr "b"\n', r"app.po:1: this is not PO: 'x'"),
        (b'msgid "a"b"\nmsgstr "b"\n', r"app.po:1: this is not PO"),
        (b'msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', r"app.po:3: the msgstr of a plural"),
        (b'msgid "a"\nmsgstr[0] "c"\n', r"app.po:2: msgstr\[0\] without msgid_plural"),
        (b'msgid "a"\nmsgstr "c"\nmsgid_plural "b"\n', r"app.po:3: msgid_plural in the wrong place"),
        (b'msgid "a"\nmsgctxt "b"\nmsgstr "c"\n', r"app.po:2: msgctxt in the wrong place"),
        (b'msgid[1] "a"\nmsgstr "c"\n', r"app.po:1: msgid cannot have a number"),
        (b'msgid "a"\nmsgstr "b" msgid "c"\nmsgstr "d"\n', r"app.po:2: two entries on one line"),
        (b'msgid\nmsgstr "c"\n', r"app.po:1: msgid without a string after it"),
        (b'msgid "a"\nmsgstr\n\nmsgid "b"\nmsgstr "c"\n', r"app.po:3: msgstr without a string after it"),
        (b'msgid "a"\nmsgstr', r"app.po:2: msgstr without a string after it"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(data, message):
    with pytest.raises(Misuse, match=message):
        read(data)


def test_a_keyword_may_stand_alone_on_its_line():
    assert read('msgid\n"a"\nmsgstr\n"b"\n').units[0].sources == ("a",)


def test_an_empty_file_has_no_units():
    for data in (b"", b"\n\n", b"# nothing\n", b"\xef\xbb\xbf"):
        document = read(data)
        assert list(document.units) == []
        assert document.written({}, True) == data


def test_duplicates_are_both_filled_and_named():
    document = read(HEADER + 'msgid "a"\nmsgstr ""\n\nmsgid "a"\nmsgstr ""\n\nmsgctxt "x"\nmsgid "a"\nmsgstr ""\n')
    assert document.notes == ["app.po:12: the same message as in line 9; msgfmt refuses such a file"]
    translator = StandIn()
    results = Filler(translator, SEARCH, PROTECT).results(document, lambda unit: True)
    assert [result.texts for result in results] == [("A",)] * 3
    assert translator.asked == ["a"]


def test_provenance_is_a_comment_that_is_written_once():
    text = HEADER + '# Mine.\n#: a.c:1\nmsgid "use argon2"\nmsgstr ""\n'
    translator = StandIn(lambda line: ["utilisez argon2"])
    once = text_of(text, comments=True, translator=translator)
    assert once.endswith(
        "# Mine.\n# pointing: copied «argon2» (characters 5–10)\n#: a.c:1\n#, fuzzy\n"
        'msgid "use argon2"\nmsgstr "utilisez argon2"\n'
    )
    assert text_of(once, comments=True, translator=translator, every=True) == once


def test_bytes_as_numbers_and_entries_on_one_line_are_left():
    results = filled(HEADER + 'msgid "\\303\\251t\\303\\251"\nmsgstr ""\n\nmsgid "a" msgstr ""\n')[2]
    assert [result.status for result in results] == ["failed", "failed"]


def test_long_messages_are_left_quickly():
    line = '"' + "word " * 14 + '"\n'
    text = HEADER + 'msgid ""\n' + line * 150_000 + 'msgstr ""\n\nmsgid "' + "x" * 10_000_000 + '"\nmsgstr ""\n'
    translator = StandIn()
    _, data, results = filled(text + '\nmsgid "a"\nmsgstr ""\n', translator=translator)
    assert [result.status for result in results] == ["failed", "failed", "filled"]
    assert "is too long: 10,500,000 characters" in results[0].reason
    assert translator.asked == ["a"]
    assert data.decode() == text + '\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n'


def test_a_file_that_is_not_wrapped_stays_so():
    words = "word " * 29 + "end"
    wrapped = HEADER + 'msgid ""\n"' + "word " * 15 + '"\n"' + "word " * 14 + 'end"\nmsgstr ""\n'
    flat = HEADER + f'msgid "{words}"\nmsgstr ""\n'
    assert all(len(line) < 80 for line in text_of(wrapped).splitlines())
    assert text_of(flat).endswith(f'msgstr "{words.upper()}"\n')
    assert polib.pofile(text_of(wrapped))[0].msgstr == words.upper()


@pytest.mark.skipif(shutil.which("msgcat") is None, reason="gettext's tools are not installed")
def test_msgcat_finds_nothing_to_change(tmp_path):
    entries = [
        '#, fuzzy, c-format\nmsgid "%s of %d"\nmsgstr ""\n',
        'msgid "tab\\tquote \\"x\\" back\\\\slash"\nmsgstr ""\n',
        'msgid "two\\nlines\\n"\nmsgstr ""\n',
        f'msgid ""\n"{"word " * 15}"\n"and more"\nmsgstr ""\n',
    ]
    for path in (tmp_path / "a.po", tmp_path / "b.po"):
        path.write_text(HEADER + "\n".join(entries))
    normal = subprocess.run(["msgcat", tmp_path / "a.po"], capture_output=True, check=True, text=True).stdout
    (tmp_path / "b.po").write_text(text_of(normal, every=True))
    after = subprocess.run(["msgcat", tmp_path / "b.po"], capture_output=True, check=True, text=True).stdout
    assert after == (tmp_path / "b.po").read_text()


def test_polib_reads_the_same():
    text = HEADER + "".join(
        f'{context}msgid "a{number}\\n\\t\\"x\\" \\\\ é"\nmsgstr "{number}"\n\n'
        for number, context in enumerate(["", 'msgctxt "c"\n', "# x\n", "#, fuzzy\n"])
    )
    ours, theirs = read(text), polib.pofile(text)
    assert [(unit.context, unit.sources[0], unit.targets[0]) for unit in ours.units] == [
        (entry.msgctxt, entry.msgid, entry.msgstr) for entry in theirs
    ]
    assert [unit.state == "fuzzy" for unit in ours.units] == [entry.fuzzy for entry in theirs]
