"""Questions with a checkable answer: read, asked greedily, judged, and compared between two releases in pairs."""
