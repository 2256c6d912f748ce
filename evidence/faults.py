"""Names of the faulty workloads' settings (`injected`), for those who must not register them."""

HEALTHY = "vit_tiny_patch16_224"
# Seconds, in the environment.
CALL_VARIABLE = "EVIDENCE_SLOWER_CALL_S"
SLIGHT_CALL_VARIABLE = "EVIDENCE_SLIGHTLY_SLOWER_CALL_S"
COMPILE_VARIABLE = "EVIDENCE_SLOWER_COMPILE_S"
