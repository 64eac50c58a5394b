# What dockerd's configuration rolls back to when the change that tries another one is cut.
# Parameters: owner (unit of the change) held (nothing: dockerd may start with either) daemon_json and dropin (paths), daemon_text and dropin_text
# (base64; empty: there was none), endpoints (units that stand on dockerd).
put_back() { # path, content in base64
  [ -n "$2" ] || { durably_gone "$1"; return; }
  mode=$(stat -c %a "$1" 2>/dev/null) && owns=$(stat -c %u:%g "$1")
  printf %s "$2" | base64 -d | durable_file "$1" "${mode:-0644}" && chown "${owns:-0:0}" "$1"
}
restore() {
  put_back "$daemon_json" "$daemon_text" && put_back "$dropin" "$dropin_text"
}
restart() {
  # shellcheck disable=SC2086 - a list of units
  systemctl restart --no-block docker.service $endpoints
}
