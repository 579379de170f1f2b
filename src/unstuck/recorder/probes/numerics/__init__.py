"""Where numbers break."""
