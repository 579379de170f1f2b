"""Everything the recorder can say, as plain typed data: one module a family, loaded when first needed.

The recorder makes these, `journal` writes them as JSON lines, the Case carries them, rules read their fields. Standard
library only: the modules are injected with the recorder.
"""
