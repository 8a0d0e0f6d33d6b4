"""Benchmarks of xbuf: `python -m benchmarks`; figures and their history stand in docs/performance.md."""
