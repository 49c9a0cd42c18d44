"""Questions about branches: one module each, plain tables out."""
