"""Totals -> report.json, report.md, report.html and evidence.csv.

Invariant: code counts, the model only words; every number on a page stands in report.json, and
every quote in its record.
"""

from job.report.evidence import LineOf
from job.report.folder import write_report
from job.report.make import make_report

__all__ = ["LineOf", "make_report", "write_report"]
