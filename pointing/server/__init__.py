"""`pointing serve`: the page, the HTTP API, and LibreTranslate's interface."""
