"""diffusion: one step of a UNet that turns noise into an image, as in Stable Diffusion.

Residual blocks with GroupNorm and SiLU, and transformers that attend to a text, at three
resolutions of 128 to 512 channels. Stable Diffusion 1 has four, of 320 to 1280. The classes are in
`_unet`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    from . import Built

SIZE, TEXT_LENGTH = 32, 77


@workload("unet_step", family="diffusion", also=("training",))
def unet_step(batch_size: int) -> Built:
    """Latents (batch_size, 4, 32, 32), time steps (batch_size,) and a text (batch_size, 77, 256) to
    the noise in the latents.
    """
    import torch

    from ._unet import LATENTS, TEXT_WIDTH, UNet

    latents = torch.randn(batch_size, LATENTS, SIZE, SIZE)
    steps = torch.randint(0, 1000, (batch_size,)).float()
    return UNet(), (latents, steps, torch.randn(batch_size, TEXT_LENGTH, TEXT_WIDTH))
