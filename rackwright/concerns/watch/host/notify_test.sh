# Send a test message by the sender that the last deploy wrote.
if [ ! -f "$sender" ]; then
  echo "has no sender: deploy it with watch() in deploy.py and notify in its settings" >&2
  exit 1
fi
answer=$(sh "$sender" test) && { printf '%s\n' "$answer"; exit 0; }
printf '%s\n' "$answer" >&2
exit 1
