"""XLIFF 1.2 and 2: targets are added, inline elements kept, and nothing else changes."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from standin import PROTECT, SEARCH, StandIn

from pointing.documents.document import Fill
from pointing.documents.xliff import Xliff
from pointing.errors import Misuse
from pointing.translation.filling import Filler

PATH = Path("a.xlf")
OLD = """<?xml version='1.0' encoding="UTF-8"?>
<!-- a comment -->
<xliff version="1.2"  xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:my='urn:my'>
  <file original="a" source-language="en" datatype="plaintext"><body>
    <trans-unit id="1" my:x="é">
      <source>Open &amp; close</source>
    </trans-unit>
    UNITS
  </body></file>
</xliff>
"""
NEW = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="fr">
<file id="f"><unit id="u"><originalData><data id="d">x</data></originalData>
  <segment id="s1"><source>Open</source></segment>
  <ignorable><source> </source></ignorable>
  <segment state="initial" id="s2">
    <source>a <pc id="1">b</pc> <ph id="2" dataRef="d"/></source>
    <target></target>
  </segment>
</unit></file></xliff>
"""


def read(text):
    return Xliff(PATH, text if isinstance(text, bytes) else text.encode(), "fr")


def filled(text, *, fuzzy=True, comment=None, translator=None):
    document = read(text)
    results = Filler(translator or StandIn(), SEARCH, PROTECT).results(document, lambda unit: unit.state == "empty")
    fills = {result.unit.number: Fill(result.texts, comment) for result in results if result.status == "filled"}
    data = document.written(fills, fuzzy)
    ElementTree.fromstring(data)
    return data.decode(document.raw.encoding), results


def test_a_target_is_added_after_its_source():
    text = OLD.replace("UNITS", "")
    expected = text.replace("<file original", '<file target-language="fr" original').replace(
        "</source>\n",
        '</source>\n      <target state="needs-review-translation" state-qualifier="mt-suggestion">'
        "OPEN &amp; CLOSE</target>\n",
    )
    assert filled(text)[0] == expected
    plain = filled(text, fuzzy=False, comment="<x>")[0]
    assert '<target state="translated">OPEN &amp; CLOSE</target>\n      <note from="pointing">&lt;x&gt;</note>' in plain


def test_states_of_units():
    units = """<trans-unit id="2"><source>a</source><target>b</target></trans-unit>
    <trans-unit id="3" translate="no"><source>a</source></trans-unit>
    <trans-unit id="4"><source>a</source><target state="needs-review-translation">b</target></trans-unit>
    <trans-unit id="5"><source>a</source><target state="new">a</target></trans-unit>
    <trans-unit id="6"><source>a</source><target/>
    <alt-trans><source>x</source><target>y</target></alt-trans></trans-unit>
    <group translate="no"><trans-unit id="7"><source>a</source></trans-unit></group>
    <trans-unit id="8"><source>a</source><seg-source><mrk mtype="seg">a</mrk></seg-source></trans-unit>"""
    document = read(OLD.replace("UNITS", units))
    assert [unit.state for unit in document.units] == (
        ["empty", "translated", "locked", "fuzzy", "empty", "empty", "locked", "empty"]
    )
    text, results = filled(OLD.replace("UNITS", units))
    assert [result.status for result in results] == (
        ["filled", "left", "left", "left", "filled", "filled", "left", "failed"]
    )
    assert "<alt-trans><source>x</source><target>y</target></alt-trans>" in text
    assert text.count(">A</target>") == 2


def test_inline_elements_are_written_as_they_stand():
    source = 'Click <g id="1" ctype=\'bold\'>here <x id="2"/></g><ph id="3">&lt;br&gt;</ph> now &lt;b&gt;'
    text, _ = filled(OLD.replace("UNITS", f'<trans-unit id="2"><source>{source}</source></trans-unit>'))
    assert source.replace("Click", "CLICK").replace("here", "HERE").replace("now", "NOW") + "</target>" in text


def test_inline_elements_may_change_places_but_not_their_nesting():
    unit = '<trans-unit id="2"><source><g id="1">a</g> <g id="2">b</g></source></trans-unit>'
    swapped = StandIn(lambda line: ['<g id="2">B</g> <g id="1">A</g>'] if "<g" in line else ["X"])
    assert '><g id="2">B</g> <g id="1">A</g></target>' in filled(OLD.replace("UNITS", unit), translator=swapped)[0]
    for wrong in ('<g id="1">A <g id="2">B</g>', 'A B</g></g> <g id="1"> <g id="2">', "A B", '<g id="1">A</g>'):
        results = filled(OLD.replace("UNITS", unit), translator=StandIn(lambda line, wrong=wrong: [wrong]))[1]
        assert results[1].status == "failed", wrong
    unit = '<trans-unit id="2"><source><bpt id="1">[</bpt>a<ept id="1">]</ept></source></trans-unit>'
    wrong = StandIn(lambda line: ['<x id="2"/>a<x id="1"/>'] if "<x" in line else ["X"])
    result = filled(OLD.replace("UNITS", unit), translator=wrong)[1][1]
    assert "another order" in result.reason


def test_protected_text_is_one_element():
    unit = '<trans-unit id="2"><source>run <mrk mtype="protected">make all</mrk></source></trans-unit>'
    text, _ = filled(OLD.replace("UNITS", unit))
    assert 'RUN <mrk mtype="protected">make all</mrk></target>' in text


def test_what_cannot_be_guaranteed_is_left():
    for inner in ("a<!-- c -->b", "a<unknown/>", '&lt;g id="1">a', "a<?p i?>"):
        results = filled(OLD.replace("UNITS", f'<trans-unit id="2"><source>{inner}</source></trans-unit>'))[1]
        assert [result.status for result in results] == ["filled", "failed"], inner


def test_xliff_2_has_the_state_at_its_segments():
    text, results = filled(NEW)
    assert [result.texts for result in results] == [("OPEN",), ('A <g id="1">B</g> <x id="2"/>',)]
    expected = NEW.replace("<segment id", '<segment state="initial" id').replace(
        "Open</source>", "Open</source><target>OPEN</target>"
    )
    expected = expected.replace("<target></target>", '<target>A <pc id="1">B</pc> <ph id="2" dataRef="d"/></target>')
    assert text == expected
    final, _ = filled(NEW, fuzzy=False, comment="c")
    assert '<segment state="translated" id="s2">' in final
    note = '<note category="pointing">c</note>'
    assert f"<notes>{note}{note}</notes><originalData>" in final


def test_prefixes_cdata_and_line_ends_are_kept():
    text = (
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2">\r\n<x:file target-language="fr">\r\n'
        '<x:trans-unit id="1">\r\n<x:source><![CDATA[a < b]]></x:source>\r\n</x:trans-unit></x:file></x:xliff>\r\n'
    )
    new, _ = filled(text, fuzzy=False)
    assert new == text.replace("</x:source>", '</x:source>\r\n<x:target state="translated">A &lt; B</x:target>')


def test_encodings_are_kept():
    text = OLD.replace("UTF-8", "ISO-8859-1").replace("UNITS", "")
    translator = StandIn(lambda line: ["œuf é"])
    document = read(text.encode("latin-1"))
    results = Filler(translator, SEARCH, PROTECT).results(document, lambda unit: True)
    data = document.written({0: Fill(results[0].texts)}, True)
    assert b'my:x="\xe9"' in data
    assert b"&#339;uf \xe9</target>" in data
    wide = ("\ufeff" + text.replace("ISO-8859-1", "UTF-16")).encode("utf-16-le")
    assert read(wide).written({0: Fill(("b",))}, True).decode("utf-16").count(">b</target>") == 1


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB + "<xliff version='1.2'>&b;</xliff>", "a.xlf:1: this file declares a document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><xliff version="1.2"/>', "a.xlf:1: this file declares"),
        ("<xliff version='1.2'>\n<file>", "a.xlf:2: this is no XML: no element found"),
        ("", "this is no XML: no element found"),
        ("<html/>", "this is no <xliff> with a version"),
        ("<xliff version='3.0'/>", "this is version 3.0"),
        ("<xliff version='1.2'>" + "<group>" * 300, "nested too deep"),
        ("<xliff version='1.2'>&nbsp;</xliff>", "this is no XML: undefined entity"),
    ],
)
def test_bad_files_are_refused(text, message):
    with pytest.raises(Misuse, match=message):
        read(text)


def test_a_large_file_is_read_in_one_pass():
    units = "".join(f'<trans-unit id="é{i}"><source>é{i}</source></trans-unit>\n' for i in range(20_000))
    assert len(read(OLD.replace("UNITS", units)).units) == 20_001
