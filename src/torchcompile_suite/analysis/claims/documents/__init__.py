"""The rules for the claims of the five documents, one module a document (see claims.toml)."""
