"""Pages of the documentation that are printed from the code: settings and formats."""
