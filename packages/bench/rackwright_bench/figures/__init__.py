"""What came of a cell, and what two of them say of each other: plain values."""
