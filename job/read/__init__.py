"""Reading: inputs as the user names them -> raw records, each with its file and byte offset.

`plan_inputs` fixes what each file is and in which slices it is read; `read_slice` reads one. The
steps between them, from the outside in: `inputs` (files), `streams` (bytes), `encoding` (text),
`formats` with `documents` and `dialect` (what the text is), `lines`, and a reader for each format;
`weave` with `containers` and `chats` puts together what several streams wrote into one file, and
`repeats` counts what a line says was repeated.
"""

from job.read.plan import FilePlan, Plan, plan_inputs
from job.read.slices import Slice, read_slice

__all__ = ["FilePlan", "Plan", "Slice", "plan_inputs", "read_slice"]
