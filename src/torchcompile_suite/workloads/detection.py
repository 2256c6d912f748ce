"""detection: a network that finds objects, with its post-processing.

After the network the boxes are decoded, the best ones are taken, and non-maximum suppression
removes those that overlap. How many boxes are left depends on the image: a rounding difference may
add or remove one. PyTorch's dashboard has
`vision_maskrcnn` and the models of detectron2, which need seconds a call on two cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import library, workload

if TYPE_CHECKING:
    import torch

    from . import Built

SIZE = 320
# Some hundred boxes have a score above this, as with trained weights.
SCORE = 0.9


@workload("ssdlite320_mobilenet_v3_large", family="detection", imports=("torchvision",))
def ssdlite320_mobilenet_v3_large(batch_size: int) -> Built:
    """Images (batch_size, 3, 320, 320) to a list of boxes, scores and labels for each."""
    import torch

    make = library("torchvision").models.detection.ssdlite320_mobilenet_v3_large

    class Detector(torch.nn.Module):  # type: ignore[misc]
        """torchvision's detector takes a list of images."""

        def __init__(self) -> None:
            super().__init__()
            self.detector = make(weights=None, weights_backbone=None, score_thresh=SCORE)
            # The weights that torchvision draws give each box the same score.
            for part in self.detector.modules():
                if isinstance(part, torch.nn.Conv2d):
                    torch.nn.init.kaiming_normal_(part.weight)

        def forward(self, images: torch.Tensor) -> list[dict[str, torch.Tensor]]:
            return self.detector(list(images.unbind(0)))  # type: ignore[no-any-return]

    return Detector(), (torch.rand(batch_size, 3, SIZE, SIZE),)
