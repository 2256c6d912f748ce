"""Names of the faulty workload's setting (`injected`), for those who must not register it."""

HEALTHY = "vit_tiny_patch16_224"
FAULTY = "slower_call"
# Seconds, in the environment.
CALL_VARIABLE = "EVIDENCE_SLOWER_CALL_S"
