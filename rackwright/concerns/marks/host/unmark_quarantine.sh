# Take the mark of a quarantine away; the folder stays, which says that the host is released. No parameters.
umask 022
mkdir -p -m 0755 "$marks" && unmark quarantine
