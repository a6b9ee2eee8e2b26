"""Ratios against named peers, and the generator of the large models they are measured on.

``python -m benchmarks`` prints the table of docs/performance.md; ``--help`` lists the parts.
"""
