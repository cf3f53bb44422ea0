import numpy as np
import pytest
import tiny
import torch

from pointing.corpus.preparation import prepare
from pointing.model.loss import log_likelihood
from pointing.model.seq2seq import Seq2Seq
from pointing.settings_file import read_config
from pointing.system.world import Processes
from pointing.training.validation import Measured, _numbers, validate

ALONE = Processes(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    config = read_config(tiny.write(folder))
    return config, prepare(config, folder / "prepared", workers=1)[0]


def make(config, corpus, output="pointer-softmax"):
    torch.manual_seed(0)
    settings = config.model.model_copy(update={"output": output})
    model = Seq2Seq(settings, len(corpus.lexicon.source), len(corpus.lexicon.target))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.5)
    return model.eval()


@pytest.mark.parametrize("output", ["softmax", "pointer-softmax", "pointer-network"])
def test_the_batches_numbers_are_those_of_the_sentences_one_by_one(corpus, output):
    config, made = corpus
    model, dev = make(config, made, output), made.split("dev")
    numbers = validate(config, model, dev, ALONE)
    with torch.no_grad():
        alone = [dev.batch(np.array([row])) for row in range(len(dev))]
        nll = [-log_likelihood(config, model, model(b.x, b.x_mask, b.y), b).sum().item() for b in alone]
    assert numbers["sentences"] == 20
    assert numbers["nll"] == pytest.approx(np.mean(nll), rel=1e-5)
    assert numbers["nll_word"] == pytest.approx(np.sum(nll) / numbers["words"], rel=1e-5)
    assert ("switch" in numbers) is (output == "pointer-softmax")


def test_every_dev_sentence_has_one_name_to_copy(corpus):
    config, made = corpus
    dev, model = made.split("dev"), make(*corpus)
    numbers = validate(config, model, dev, ALONE)
    assert (numbers["words"], numbers["pointers"]) == (int(dev.target_lengths.sum()), 20)
    batch = dev.batch(np.arange(20))
    with torch.no_grad():
        looks = model(batch.x, batch.x_mask, batch.y)[2].argmax(2)
    V, real = len(made.lexicon.target), batch.mask & (batch.target >= len(made.lexicon.target))
    assert numbers["pointer_accuracy"] == pytest.approx((looks == batch.target - V)[real].float().mean().item())
    assert 0 < numbers["switch"]["pointing"] < 1


def test_the_shares_of_several_processes_are_the_whole(corpus):
    config, made = corpus
    model, dev, shares = make(config, made), made.split("dev"), []

    class Part(Processes):
        def gather(self, mine):
            shares.append(mine)
            return shares  # of the processes so far: after the last one, all

    for rank in range(5):  # of three batches: two processes have nothing to do
        together = validate(config, model, dev, Part(rank, 5, ALONE.device))
    whole = validate(config, model, dev, ALONE)
    assert together.pop("switch").keys() == whole["switch"].keys()
    whole.pop("switch")
    assert together == pytest.approx(whole)


def test_a_likelihood_that_is_no_number_is_told_as_it_is():
    d, z = np.full(5, np.nan, np.float32), np.ones(5, bool)
    numbers = _numbers(Measured(d, z, 2, 5, np.nan, np.nan, 0, 0, 0, 0))
    assert np.isnan(numbers["nll"])
    assert numbers["pointer_accuracy"] is None
    assert "switch" not in numbers
