"""timm models that are not in the suite, for its side of the comparison with plain scripts."""

from torchcompile_suite.workloads import timm_models, workload

for _name in ("regnety_002", "deit_tiny_patch16_224"):
    workload(_name, family="timm", imports=("timm",))(
        lambda batch_size, name=_name: timm_models.build(name, batch_size)
    )
