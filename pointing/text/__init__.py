"""Raw lines to tokens that know their place, and back; vocabulary, dictionary, entities, subwords."""
