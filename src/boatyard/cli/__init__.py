"""Words typed and answered. Sees only client and models; `commands` is the table of verbs."""
