"""The census of identifiers in corpora, and the tables beside it (Table 2)."""
