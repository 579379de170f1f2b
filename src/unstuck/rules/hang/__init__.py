"""Family `hang`: nothing moves. What the blocked thread does decides the rule."""
