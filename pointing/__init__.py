"""pointing: sequence-to-sequence models that copy the words they do not know."""

__version__ = "0.1.0"
