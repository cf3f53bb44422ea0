"""A line in, beam search over f_t, an output whose every word knows its origin."""
