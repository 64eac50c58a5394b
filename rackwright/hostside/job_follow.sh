# Print a job's state and its output from a byte on; wait up to `patience` fifths of a second for news.
# Parameters: unit folder offset patience.
waited=0
while :; do
  # A job that ends by itself leaves its status; whether it was ended otherwise is asked once a second.
  if [ -e "$folder/status" ] || [ $((waited % 5)) = 0 ]; then
    case "$(systemctl is-active "$unit")" in
      active | activating | deactivating | reloading) running=yes ;;
      *) running=no ;;
    esac
  fi
  size=$(stat -c %s "$folder/log" 2>/dev/null || echo 0)
  if [ "$running" = no ] || [ "$size" -gt "$offset" ] || [ $waited -ge "$patience" ]; then break; fi
  waited=$((waited + 1))
  sleep 0.2
done
echo "running=$running"
echo "status=$(cat "$folder/status" 2>/dev/null)"
echo "log=$(tail -c +$((offset + 1)) "$folder/log" 2>/dev/null | head -c 65536 | base64 -w0)"
