"""The one room that meets ASV: plugin, repository, environments, publishing."""
