"""Parts of the joins by foreign key."""
