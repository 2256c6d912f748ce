"""A fleet: series measured on many machines, with Ray as transport.

Ray carries work and decides which free machine gets it. The driver's files decide what is left: the
results, the journal of each series that has begun, and the diary. A machine keeps nothing but
compiled code.

- ``messages``: what the driver and a machine say to each other
- ``plan``: which series are left, how long they take, and on how many machines
- ``node``: the process that measures on a machine. It knows nothing of Ray.
- ``plain``: starts `node` without anything that Ray has set
- ``inspection``: what a machine must be like to take part
- ``store``: the driver's files
- ``driver``: who gets what next, and what a lost machine means
- ``head``: how Ray has to be started, and whether the head of the cluster is there
- ``transport``: Ray. Nothing else imports it.
"""
