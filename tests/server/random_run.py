"""A model with random weights that keeps tags as protected spans."""

from pathlib import Path

import torch

from pointing.config import Config, checked
from pointing.corpus.lexicon import Lexicon
from pointing.generation.generator import Generator
from pointing.model.encoder import Reads
from pointing.model.run import Run
from pointing.model.seq2seq import Seq2Seq
from pointing.server.models import Model, Models
from pointing.text.vocabulary import Vocabulary

SOURCE = Vocabulary(["the", "file", "see", ",", "."], [9, 8, 7, 6, 5])
TARGET = Vocabulary(["le", "fichier", "voir", ".", "<", ">", "b"], [9, 8, 7, 6, 5, 4, 3])


def random_generator(seed):
    files = {"source": "a", "target": "b"}
    values = {
        "data": {"train": files, "dev": files, "languages": ["en", "fr"]},
        "text": {"forms": True, "protect": "software"},
        "model": {"embedding": 6, "hidden": 7, "encoder": 4},
    }
    config = checked(Config, values)
    torch.manual_seed(seed)
    seq2seq = Seq2Seq(config.model, len(SOURCE), len(TARGET), reads=Reads(config.text.forms)).eval()
    for parameter in seq2seq.parameters():
        torch.nn.init.normal_(parameter, 0, 0.9)
    return Generator(Run(Lexicon(config, SOURCE, TARGET), seq2seq, {}))


def random_models(seed):
    """The only run of a server."""
    generator = random_generator(seed)
    return Models([Model("random", Path("random"), generator, generator.lexicon.config, {})])
