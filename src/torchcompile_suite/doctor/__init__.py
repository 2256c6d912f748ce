"""``torchcompile-suite doctor``: what could spoil a measurement or a compile on this machine.

`software` looks at the Python whose torch is to be used, `hardware` at the machine under it.
"""
