# Let the unit that puts our rules back, and the timer that looks after them, do so from now on. Parameters: unit timer.
systemctl enable --quiet --no-reload "$unit" "$timer" && systemctl daemon-reload && systemctl restart "$unit" && systemctl start "$timer"
