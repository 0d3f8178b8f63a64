"""Filters: CEL text to one small typed tree, with two back-ends. Names are loaded when first used."""
