"""What is compared: the catalogue of PyTorch releases, their locks and the git ledger of them."""
