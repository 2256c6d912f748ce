"""Result files on disk: records, ASV's result files, the marker of an overlay."""
