# Remove one file of the watch, and stop it first where it is a unit. Parameters: path units.
case $path in
  "$units"/*) systemctl disable --quiet --now --no-reload "${path##*/}" 2>/dev/null ;;
esac
rm -f "$path" || exit 1
case $path in
  "$units"/*) systemctl daemon-reload && systemctl reset-failed "${path##*/}" 2>/dev/null ;;
  *) rmdir --ignore-fail-on-non-empty "${path%/*}" 2>/dev/null ;;
esac
exit 0
