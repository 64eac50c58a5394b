"""What the engines accept, as data, and the checks on it. Pure: nothing here touches a host."""
