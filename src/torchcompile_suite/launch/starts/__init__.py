"""Cold starts: whole processes, each from its start to its first result.

- ``prepare``: the process that makes what the services find when they start.
- ``service``: the plain program whose start is measured. Until its first result it imports only
  what a user's service imports.
- ``ending``: what the service does after its first result.
- ``orders``: the files and the orders between them.

`torchcompile_suite.engine.starts` drives these processes.
"""
