# Stop an endpoint that has nothing to roll back to. Parameters: unit home forget ("yes": it was never proven here).
systemctl stop "$unit" || exit 1
if [ "$forget" = yes ]; then
  systemctl disable --quiet "$unit"
  rm -f "$home/current"
  echo "stopped: no release has ever been proven here"
else
  echo "stopped: this release was proven once, and there is no other to roll back to"
fi
