"""What the compiler did: asked after a launch has measured."""
