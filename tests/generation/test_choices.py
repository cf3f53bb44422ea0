"""The best choices of each step, and searches that nobody waits for any more."""

from pathlib import Path

import pytest

from pointing import Search, load

FROZEN = Path(__file__).parents[1] / "frozen"
TEXTS = ["the modern release of tobram is 315.38", "open zorblatt.conf", "a b"]
RUNS = ["pointer-softmax", "softmax", "pointer-network", "large-vocabulary", "dictionary"]


@pytest.fixture(scope="module", params=RUNS)
def model(request):
    return load(FROZEN / request.param)


@pytest.fixture(scope="module")
def pointer():
    return load(FROZEN / "pointer-softmax")


def test_choices_change_nothing_else(model):
    for with_choices, without in zip(model.generate(TEXTS, choices=4), model.generate(TEXTS), strict=True):
        assert with_choices.text == without.text
        assert with_choices.score == without.score
        assert all(token.choices == () for token in without.tokens)


def test_choices_are_ranked_different_and_have_the_one_that_greedy_search_took_first(model):
    for output in model.generate(TEXTS, choices=4, beam=1, max_length=6):
        for token in output.tokens:
            shares = [choice.probability for choice in token.choices]
            assert shares == sorted(shares, reverse=True)
            assert 0 < sum(shares) < 1.0001
            places = [(choice.text, choice.origin, choice.source) for choice in token.choices]
            assert len(set(places)) == len(places) > 0
            assert places[0] == (token.text, token.origin, token.source)
            assert shares[0] == pytest.approx(token.probability, rel=1e-4)


def test_choices_of_greedy_search_are_the_models_whole_distribution(pointer):
    """Asked for as many as there are, they are all that has a probability, except the end of the sentence."""
    (output,) = pointer.generate(TEXTS[:1], choices=500, beam=1, max_length=1, max_ratio=None, allow_unk=True)
    first = output.tokens[0]
    words = sum(choice.origin == "shortlist" for choice in first.choices)
    copies = {choice.source for choice in first.choices if choice.origin == "copied"}
    assert words + 1 <= len(pointer.lexicon.target)
    assert copies == set(range(len(output.source.starts)))
    assert 0.5 < sum(choice.probability for choice in first.choices) <= 1.0001


def test_alternatives_have_choices_of_their_own(pointer):
    output = pointer.generate(TEXTS[0], choices=3, beam=3, nbest=3)
    for alternative in (output, *output.alternatives):
        assert all(1 <= len(token.choices) <= 3 for token in alternative.tokens)


def run(model, lines, settings, abandoned):
    return model.run(list(model.read(lines)), settings, abandoned=abandoned)


def test_an_abandoned_text_leaves_the_others_as_they_are(pointer):
    settings = Search(beam=3)
    expected = pointer.generate(TEXTS, settings)
    for row in range(len(TEXTS)):
        found = run(pointer, TEXTS, settings, lambda index, row=row: index == row)
        for index, (output, other) in enumerate(zip(found, expected, strict=True)):
            if index != row:
                assert output.text == other.text
                assert output.score == pytest.approx(other.score, abs=1e-5)


def test_a_search_of_which_everything_is_abandoned_ends_at_the_next_step(pointer):
    asked = []

    def abandoned(index):
        asked.append(index)
        return len(asked) > 2 * len(TEXTS)  # after two steps

    run(pointer, TEXTS, Search(beam=2, min_length=400, max_length=400, max_ratio=None), abandoned)
    assert len(asked) <= 3 * len(TEXTS)


def test_nothing_abandoned_is_as_if_nobody_asked(pointer):
    found = run(pointer, TEXTS, Search(beam=4), lambda index: False)
    assert [output.text for output in found] == [output.text for output in pointer.generate(TEXTS, beam=4)]
