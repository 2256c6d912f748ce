"""What the compiler did in a cold launch. Recorded between the timed steps and after them."""
