"""``torchcompile-suite try``: does compiling pay for one model, on this machine?

- `target` reads the name of a model, and imports its file; `build` builds it; `given` registers it
  as a workload.
- `plan` holds the question and its cells.
- `outline` describes the model in the Python whose torch is asked about; `run` measures there.
- `view` shows the answer; `api` offers the same to a project's own tests.
"""
