"""``torchcompile-suite try``: one model, this machine, an answer within minutes.

`plan` says what is asked, `worker` measures it in the Python whose torch is asked about, `run`
starts that and keeps what it finds, `view` shows it.
"""
