"""The seams: the only files that know torch's private names. The hot path is written out here by hand."""
