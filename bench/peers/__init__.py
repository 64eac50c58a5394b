"""What bench/converge.py measures beside Rackwright, as a good user of each would write it, and how it is measured."""
