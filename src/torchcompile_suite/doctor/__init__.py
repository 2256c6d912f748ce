"""``torchcompile-suite doctor``: faults of this machine that affect compiling or measuring.

`software` checks the Python whose torch is to be used, `hardware` checks the machine.
"""
