"""Random problems solved by the package and judged by code that shares nothing with it."""
