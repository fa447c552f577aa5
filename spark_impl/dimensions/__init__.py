"""Parts of the slowly changing dimensions."""
