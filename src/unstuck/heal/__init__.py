"""Remedies: small, drop-in, one file each, and every act is said."""
