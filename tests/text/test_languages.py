"""Languages guessed from names of columns and files, and from common words."""

import pytest

from pointing.text.languages import language_of_name, language_of_text, language_scores


@pytest.mark.parametrize(
    ("name", "language"),
    [
        *[("en", "en"), (" EN ", "en"), ("fr_FR", "fr"), ("pt-BR", "pt"), ("zh-Hans", "zh"), ("fr_FR.UTF-8", "fr")],
        *[("French", "fr"), ("Français", "fr"), ("Čeština", "cs"), ("text (de)", "de"), ("source_en", "en")],
        *[("translation.fr", "fr"), ("Deutscher Text", None), ("German text", "de"), ("English (US)", "en")],
        *[("id", None), ("nom de fichier", None), ("key", None), ("", None), ("日本語", None), ("friend", None)],
    ],
)
def test_a_name_says_the_language(name, language):
    assert language_of_name(name) == language


TEXTS = {
    "en": ["The file could not be opened.", "You are not allowed to do this."],
    "fr": ["Le fichier n'est pas dans le dossier.", "Vous ne pouvez pas ouvrir une image."],
    "de": ["Die Datei ist nicht für den Nutzer.", "Das Bild wird mit einer Maske geladen und nicht gespeichert."],
    "es": ["El archivo no se puede abrir.", "Los datos de la red no son para el usuario."],
    "nl": ["Het bestand is niet gevonden.", "Een van de mappen kan niet naar het doel."],
}


@pytest.mark.parametrize("language", TEXTS)
def test_common_words_say_the_language(language):
    assert language_of_text(TEXTS[language]) == language


def test_a_text_without_common_words_has_no_language():
    assert language_of_text([]) is None
    assert language_of_text(["", "12 %"]) is None
    assert language_of_text(["Файл не найден"]) is None
    assert language_of_text(["OK", "Zorblatt", "Quux"]) is None


def test_one_common_word_in_twenty_is_the_least():
    assert language_of_text(["the" + " zorblatt" * 19]) == "en"
    assert language_of_text(["the" + " zorblatt" * 20]) is None


def test_two_languages_that_are_nearly_as_likely_are_none():
    # `un` is also French; `los` is Spanish alone: 6 words against 5 are enough, 7 against 6 are not
    assert language_of_text(["un " * 5 + "los"]) == "es"
    assert language_of_text(["un " * 6 + "los"]) is None


def test_languages_have_their_part_of_the_common_words():
    found = dict(language_scores(["the cat and the dog are in the house", "le chat"]))
    assert found["en"] > 0.5 > found["fr"] > 0
    assert sum(found.values()) == pytest.approx(1.0)
    assert language_scores(["zorblatt 315", ""]) == []
