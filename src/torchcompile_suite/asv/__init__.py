"""The one room that meets ASV: plugin, patches, repositories, environments, pages, command."""
