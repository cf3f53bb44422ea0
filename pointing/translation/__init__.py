"""`pointing translate`: the untranslated texts of files filled by a model, checked, and shown for review."""
