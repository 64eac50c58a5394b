# Print a host's mark behind the line `mark`, or `none`, or `no-marks` where nothing of them is there. Parameter: mark (file).
[ -d "${mark%/*}" ] || { echo no-marks; exit 0; }
[ -f "$mark" ] || { echo none; exit 0; }
echo mark
head -c 4096 "$mark"
