"""The pointer softmax on top of small random models: what it computes, what `generate()` finds, what a folder keeps."""

import copy
import subprocess
import sys

import pytest
import small
import torch
from transformers import AutoModelForSeq2SeqLM, GPT2Config, GPT2LMHeadModel

from pointing.errors import Misuse
from pointing.huggingface import PointerCollator, PointerModel, add_pointer
from pointing.huggingface.reading import pad_sources, pooled

LINES = ["open nykiquun.txt with hal9000", "ask Zorblatta", "please install libfoo7 on hal9000 today"]


@pytest.fixture(scope="module", params=small.ARCHITECTURES)
def model(request):
    below, tokenizer = small.build(request.param, width=16)
    made = add_pointer(below, tokenizer).eval()
    for name, value in small.options(request.param, tokenizer).items():
        setattr(made.generation_config, name, value)
    return made


@pytest.fixture(scope="module")
def bart():
    below, tokenizer = small.build("BART", width=16)
    return add_pointer(below, tokenizer).eval()


def batch(model, pairs=3):
    examples = [{"source": source, "target": target} for source, target in small.text()[0][:pairs]]
    return PointerCollator(model)(examples)


def test_the_model_below_is_left_as_it_was_and_its_matrix_is_the_shortlist():
    for name in small.ARCHITECTURES:
        below, tokenizer = small.build(name, width=16)
        before = copy.deepcopy(below.state_dict())
        tied = below.get_input_embeddings().weight is below.get_output_embeddings().weight
        made = add_pointer(below, tokenizer)
        assert all(torch.equal(value, before[key]) for key, value in below.state_dict().items())
        assert made.layer().shortlist.weight is below.get_output_embeddings().weight
        assert tied
        assert below.get_input_embeddings().weight is below.get_output_embeddings().weight
        added = sum(p.numel() for p in made.parameters()) - sum(p.numel() for p in below.parameters())
        parts = (made.switch, made.locations)
        assert added == sum(p.numel() for part in parts for p in part.parameters())


def test_among_pieces_the_probabilities_are_those_of_the_model_below(model):
    with torch.no_grad():
        if hasattr(model.below, "final_logits_bias"):
            model.below.final_logits_bias.normal_()
        given = model.encode(LINES)
        read = torch.tensor([[5, 9, 7], [8, 6, 5], [9, 9, 6]])
        log_f = model(**given, decoder_input_ids=read).logits
        del given["word_pieces"]
        logits = model.below(**given, decoder_input_ids=read).logits
    assert log_f.shape[-1] == model.V + 6
    torch.testing.assert_close(log_f[..., : model.V].log_softmax(-1), logits.log_softmax(-1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(log_f.exp().sum(-1), torch.ones(3, 3))


def test_the_loss_is_the_mean_of_the_labels_log_probabilities(model):
    given = batch(model)
    labels = given["labels"]
    with torch.no_grad():
        evaluated = model(**given)
        model.train()
        trained = model(**given)
        model.eval()
    counts = labels != -100
    log_p = evaluated.logits.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)[counts]
    assert (labels >= model.V).sum() > 3
    torch.testing.assert_close(evaluated.loss, -log_p.mean())
    assert trained.logits is None


def test_a_batch_gives_what_its_lines_give_one_by_one(model):
    read = torch.tensor([[5, model.V, 7]])
    with torch.no_grad():
        together = model(**model.encode(LINES), decoder_input_ids=read.expand(3, -1)).logits
        for k, line in enumerate(LINES):
            alone = model(**model.encode(line), decoder_input_ids=read).logits
            words = alone.shape[-1]
            torch.testing.assert_close(together[k : k + 1, :, :words], alone, rtol=1e-4, atol=1e-4)
            assert (together[k, :, words:] == -torch.inf).all()


@pytest.mark.parametrize("beams", [1, 3])
def test_steps_with_a_cache_equal_the_whole_sequence(model, beams):
    settings = {"max_new_tokens": 6, "num_beams": beams, "length_penalty": 0.0, "output_scores": True}
    given = model.encode(LINES)
    with torch.no_grad():
        found = model.generate(**given, return_dict_in_generate=True, **settings)
        uncached = model.generate(**given, use_cache=False, **settings)
        end = model.generation_config.eos_token_id
        log_f = model(**given, decoder_input_ids=found.sequences[:, :-1]).logits
    assert torch.equal(found.sequences, uncached)
    assert (found.sequences >= model.V).any()
    log_p = log_f.gather(-1, found.sequences[:, 1:].unsqueeze(-1)).squeeze(-1)
    forced = model.generation_config.forced_bos_token_id is not None
    if beams > 1 and not forced and not (found.sequences[:, 1:] == end).any():
        torch.testing.assert_close(found.sequences_scores, log_p.sum(1), rtol=1e-4, atol=1e-4)
    if beams == 1:
        for t in range(int(forced), 6):
            torch.testing.assert_close(found.scores[t], log_f[:, t], rtol=1e-4, atol=1e-4)


def test_outputs_know_where_their_words_come_from(model):
    outputs = model.translate(LINES, num_beams=4, num_return_sequences=3, max_new_tokens=8)
    assert [output.line for output in outputs] == [1, 2, 3]
    tokens = [(token, one) for output in outputs for one in (output, *output.alternatives) for token in one.tokens]
    assert {token.origin for token, _ in tokens} >= {"copied"}
    for token, output in tokens:
        start, end = token.output
        assert output.text[start:end] == token.text
        assert 0 < token.probability <= 1
        assert 0 < token.d < 1
        if token.origin == "copied":
            assert token.text == output.source.text[slice(*token.span)] == output.source.raw(token.source)
    for output, line in zip(outputs, LINES, strict=True):
        assert output.source.text == line
        texts = [output.text, *(one.text for one in output.alternatives)]
        assert len(set(texts)) == len(texts)
        assert sorted((one.score for one in output.alternatives), reverse=True) == [
            o.score for o in output.alternatives
        ]


def test_probabilities_of_words_make_up_the_score(bart):
    (output,) = bart.translate(LINES[2], max_new_tokens=5, num_beams=1)
    sequence = bart.generate(**bart.encode(LINES[2]), max_new_tokens=5)
    logits = bart(**bart.encode(LINES[2]), decoder_input_ids=sequence[:, :-1]).logits
    log_p = logits.gather(-1, sequence[:, 1:].unsqueeze(-1)).squeeze()
    assert output.score == pytest.approx(log_p.mean().item(), rel=1e-4)
    copied = [token for token in output.tokens if token.origin == "copied"]
    assert copied
    expected = log_p[sequence[0, 1:] >= bart.V].exp().tolist()
    assert [token.probability for token in copied] == pytest.approx(expected, rel=1e-4)


def test_a_words_annotation_is_the_mean_of_its_pieces():
    states = torch.arange(8.0).view(1, 4, 2)  # pieces (0, 1), (2, 3), (4, 5), (6, 7)
    word_pieces = torch.tensor([[[0, 1], [1, 4], [2, 3], [0, 0]]])
    expected = torch.tensor([[[0.0, 1], [4, 5], [4, 5], [0, 0]]])
    torch.testing.assert_close(pooled(states, word_pieces), expected)


def test_after_a_copy_the_decoder_reads_the_mean_of_the_words_pieces(model):
    given = model.encode(LINES[:1])
    first, last = given["word_pieces"][0, 1].tolist()
    embedding = model.below.get_decoder().get_input_embeddings()
    with torch.no_grad():
        copied = model.read(**given).copied
        read = model._embed(torch.tensor([[4, model.V + 1]]), copied)
        assert last - first > 2
        torch.testing.assert_close(read[0, 0], embedding(torch.tensor(4)))
        torch.testing.assert_close(read[0, 1], embedding(given["input_ids"][0, first:last]).mean(0))


def test_a_line_without_words_leaves_everything_to_the_shortlist(bart):
    sources = [bart._pieces.source(line) for line in ("", "  ")]
    assert pad_sources(sources, bart.pad)["word_pieces"].shape == (2, 1, 2)
    with torch.no_grad():
        logits = bart(**bart.encode(["", "ask"]), decoder_input_ids=torch.tensor([[5], [5]])).logits
    assert (logits[0, :, bart.V :] == -torch.inf).all()
    assert (logits[1, :, bart.V :] > -torch.inf).all()
    assert [output.line for output in bart.translate(["", "ask"], max_new_tokens=3)] == [1, 2]
    assert bart.translate([]) == []


def test_a_folder_keeps_model_tokenizer_and_settings(model, tmp_path):
    model.save_pretrained(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} <= {".json", ".safetensors", ".spm"}
    for loaded in (PointerModel.from_pretrained(tmp_path), AutoModelForSeq2SeqLM.from_pretrained(tmp_path)):
        loaded.eval()
        assert loaded.layer().shortlist.weight is loaded.below.get_input_embeddings().weight
        given = batch(loaded)
        torch.testing.assert_close(given, batch(model))
        with torch.no_grad():
            torch.testing.assert_close(loaded(**given).logits, model(**given).logits)
        options = {"num_beams": 2, "max_new_tokens": 6}
        found, expected = loaded.translate(LINES, **options), model.translate(LINES, **options)
        assert [(o.text, o.tokenized) for o in found] == [(o.text, o.tokenized) for o in expected]
        assert [o.score for o in found] == pytest.approx([o.score for o in expected], rel=1e-5)


def test_a_model_in_bfloat16_gets_a_pointer_of_its_own_precision(tmp_path):
    below, tokenizer = small.build("T5", width=16)
    made = add_pointer(below.bfloat16(), tokenizer)
    loss = made(**batch(made)).loss
    loss.backward()
    assert {parameter.dtype for parameter in made.parameters()} == {torch.bfloat16}
    assert made.switch.last.weight.grad.isfinite().all()
    made.save_pretrained(tmp_path)
    assert PointerModel.from_pretrained(tmp_path, dtype=torch.bfloat16).dtype == torch.bfloat16


def test_gradients_reach_the_model_below_the_switch_and_the_locations(model):
    model.zero_grad()
    model(**batch(model)).loss.backward()
    parameters = {
        name: p for name, p in model.named_parameters() if p.requires_grad and not name.endswith("k_proj.bias")
    }
    without = [name for name, p in parameters.items() if p.grad is None or not p.grad.abs().sum() > 0]
    assert [name for name in without if not name.endswith("locations.key.bias")] == []
    model.zero_grad()


def test_what_cannot_be_is_said(bart, tmp_path):
    inputs = bart.encode(LINES)
    with pytest.raises(Misuse, match=r"without word_pieces.*give generate\(\*\*model.encode\(lines\)\)"):
        bart.generate(input_ids=inputs["input_ids"], max_new_tokens=2)
    with pytest.raises(
        Misuse, match=r"neither labels nor decoder_input_ids; .* label_smoothing_factor, leave that out"
    ):
        bart(**inputs)
    with pytest.raises(Misuse, match="5 sequences are not a whole number for each of 3 lines"):
        bart.outputs(LINES, torch.zeros(5, 4, dtype=torch.long))
    with pytest.raises(Misuse, match="resize the embeddings before add_pointer"):
        bart.resize_token_embeddings(900)
    gpt = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=1))
    with pytest.raises(Misuse, match="GPT2LMHeadModel is no encoder–decoder with an LM head"):
        add_pointer(gpt, bart.tokenizer)
    below, _ = small.build("T5", width=16)
    with pytest.raises(Misuse, match=r"tokenizer has \d+ pieces, but T5ForConditionalGeneration has fewer"):
        add_pointer(below, bart.tokenizer)
    head = below.lm_head
    below.lm_head = torch.nn.Sequential(head, torch.nn.Tanh())
    below.get_output_embeddings = lambda: head
    with pytest.raises(Misuse, match="does more between its decoder and its LM head"):
        add_pointer(below, small.t5_tokenizer())


def test_a_missing_extra_is_named():
    code = (
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'transformers' else find(name, *rest)\n"
        "import pointing.huggingface"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stderr.rstrip().endswith(
        "this needs transformers, which is not installed: pip install 'pointing[transformers]'"
    )
