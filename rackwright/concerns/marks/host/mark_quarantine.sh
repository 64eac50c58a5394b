# Mark the host as quarantined, unless it is already. Parameters: who reason.
umask 022
[ -f "$marks/quarantine" ] || mark quarantine up "$who" "$reason"
