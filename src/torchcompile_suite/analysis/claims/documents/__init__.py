"""The rules for the claims of the six documents, one module a document (see claims.toml)."""
