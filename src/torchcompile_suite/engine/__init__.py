"""Makes launches: `rounds` is the loop, `journal` keeps them, `launches` starts the processes."""
