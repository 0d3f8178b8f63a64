"""One folder per noun: its rules (pure), and its reconciler where something must happen."""
