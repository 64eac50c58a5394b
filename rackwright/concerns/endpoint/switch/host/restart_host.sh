# Restart the host, once its endpoints rest. What it said until now is on its disk, and the control machine has heard of it.
event restarting ""
sleep 2
sync
systemctl reboot --no-wall
sleep 60
