# Let the unit that puts our rules back, and the timer that looks after them, do so from now on. Parameters: unit timer.
systemctl daemon-reload && systemctl enable --quiet "$unit" && systemctl restart "$unit" && systemctl enable --quiet --now "$timer"
