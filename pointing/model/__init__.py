"""Encoder, attention, decoder, loss, and the folder of a run."""
