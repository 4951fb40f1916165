"""Names of figure formats, available without NumPy, which the package `figures` loads."""

FORMATS = ("png", "svg", "pdf")
