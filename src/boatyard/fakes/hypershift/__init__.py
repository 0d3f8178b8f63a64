"""A fake HyperShift for a real API server with HyperShift's CRDs. `process.play` runs it, `decide` decides, purely.

It shares no module with the rest of Boatyard: a fake that used the driver's code would repeat the driver's mistakes.
"""
