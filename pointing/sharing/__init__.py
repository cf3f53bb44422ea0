"""Runs given to others: as one file, as a folder, or on the Hugging Face hub; each with a model card."""
