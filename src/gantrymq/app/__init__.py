"""`App`: typed handlers over consumers, with dependencies, middleware and published results."""
