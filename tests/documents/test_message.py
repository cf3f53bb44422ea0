"""Messages cut into lines and put together again."""

from hypothesis import given
from hypothesis import strategies as st
from standin import PROTECT

from pointing.documents.message import has_words, pieces


def whole(message, accelerators=False):
    return "".join(piece.restored(piece.core) for piece in pieces(message, PROTECT, accelerators))


@given(st.text(alphabet="ab %s\n\t\r_&<>é ", max_size=40))
def test_the_pieces_are_the_message(message):
    assert whole(message) == message


def test_lines_and_columns_are_pieces_without_their_white_space():
    found = pieces(" a b \n\n\tc\n  -h, --help    show this\td\n", PROTECT, False)
    assert [(piece.core, piece.after) for piece in found] == [
        ("", " "),
        ("a b", " \n\n\t"),
        ("c", "\n  "),
        ("-h, --help", "    "),
        ("show this", "\t"),
        ("d", "\n"),
        ("", ""),
    ]
    assert [piece.core for piece in found if piece.is_asked] == ["a b", "c", "show this", "d"]
    assert [piece.start for piece in found] == [0, 1, 8, 12, 26, 36, 38]


def test_white_space_inside_of_a_tag_is_part_of_it():
    assert [piece.core for piece in pieces('see <a  href="x">this</a>', PROTECT, False)] == [
        'see <a  href="x">this</a>'
    ]


def test_an_accelerator_is_taken_out_and_put_back():
    (piece,) = pieces("_Open my.conf", PROTECT, True)
    assert piece.core == "Open my.conf"
    assert piece.restored("Ouvrir my.conf") == "_Ouvrir my.conf"
    assert piece.place(5, 12) == (6, 13)
    assert piece.place(0, 4) == (1, 5)  # without the mark
    _, piece = pieces("  E&xit", PROTECT, True)
    assert (piece.core, piece.place(0, 1), piece.place(0, 4)) == ("Exit", (2, 3), (2, 7))
    assert piece.restored("Fin") == "&Fin"


def test_what_has_no_words_is_not_asked_for():
    for text in ("%s: %d%%", "{count}", "<br/>", "42", "…", "%(name)s <%(mail)s>", "https://a.example"):
        assert not has_words(text, PROTECT), text
    for text in ("a", "%s file", "文", "<b>x</b>"):
        assert has_words(text, PROTECT), text
