# Restart the host, once its endpoints rest. Its output up to now is on its disk, and the control machine has it.
event restarting ""
sleep 2
sync
systemctl reboot --no-wall
sleep 60
