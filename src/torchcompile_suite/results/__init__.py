"""Result files on disk: records, ASV's files, the choice of a machine, the overlay marker."""
