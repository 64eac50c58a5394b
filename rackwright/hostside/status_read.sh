# Print how long each endpoint has been up, and how many clients are connected to it.
# Parameters: endpoints ("NAME PORT" lines, the port as four hexadecimal digits).
read -r uptime _ </proc/uptime
echo "uptime=${uptime%%.*}"
echo "$endpoints" | while read -r name port; do
  since=$(systemctl show --property=ActiveEnterTimestampMonotonic --value "rackwright-$name.service")
  echo "since.$name=${since:-0}"
  # Connections to a published port end in the container's own network.
  pid=$(docker inspect --format '{{.State.Pid}}' "rackwright-$name" 2>/dev/null) || continue
  open=$(cat "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" 2>/dev/null |
    awk -v port=":$port" 'substr($2, length($2) - 4) == port && $4 == "01" { n++ } END { print n + 0 }')
  echo "connections.$name=$open"
done
exit 0
