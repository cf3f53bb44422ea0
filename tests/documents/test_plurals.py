"""Plural forms of languages."""

import pytest

from pointing.documents.plurals import HEADERS, plural_header, read_plurals


@pytest.mark.parametrize("language", sorted(HEADERS))
def test_every_header_of_the_table_can_be_read(language):
    plurals = read_plurals(plural_header(language))
    assert set(map(plurals.form, range(1001))) == set(range(plurals.count))


def test_languages_are_found_by_their_main_part():
    assert plural_header("de_AT") == plural_header("de-CH") == plural_header("de")
    assert plural_header("pt-BR") != plural_header("pt")
    assert plural_header("sr@latin") == plural_header("sr")
    assert plural_header("tlh") is None


def test_numbers_take_their_forms():
    def forms(language, *numbers):
        return [read_plurals(plural_header(language)).form(number) for number in numbers]

    assert forms("fr", 0, 1, 2) == [0, 0, 1]
    assert forms("de", 0, 1, 2) == [1, 0, 1]
    assert forms("ru", 1, 2, 5, 11, 21, 22, 112) == [0, 1, 2, 2, 0, 1, 2]
    assert forms("pl", 1, 2, 5, 21, 22) == [0, 1, 2, 2, 1]
    assert forms("ar", 0, 1, 2, 3, 11, 100) == [0, 1, 2, 3, 4, 5]


def test_the_form_for_one_thing_is_translated_from_the_singular_wherever_it_stands():
    slovenian = read_plurals("nplurals=4; plural=(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0);")
    assert slovenian.sources("one", "many", True) == ("many", "one", "many", "many")
    assert slovenian.sources("one", "many", False) == ("many",) * 4
