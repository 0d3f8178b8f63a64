"""Child processes that carry a mark, and how processes of ours call each other over a unix socket."""
