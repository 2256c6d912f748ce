"""``torchcompile-suite try``: does compiling pay for one model, on this machine?

- `target` reads the name of a model; `build` builds it; `given` registers it as a workload.
- `plan` holds the question and its cells; `questions` has the cells of further questions.
- `outline` describes the model in the Python whose torch is asked about; `run` measures there.
- `view` shows the answer; `api` offers the same to a project's own tests.
"""
