# What dockerd's configuration rolls back to when the change that tries another one is cut.
# Parameters: owner (unit of the change) held (nothing: dockerd may start with either) daemon_json and dropin (paths), daemon_text and dropin_text
# (base64; empty: there was none), endpoints (units that need dockerd).
put_back() { # path, content in base64; a link leads to what was written, and is root only to write
  file=$1
  if [ -L "$1" ]; then
    file=$(readlink -f "$1") && [ -z "$(find "$file" "${file%/*}" -maxdepth 0 ! -uid 0 2>/dev/null)" ] || return 0
  fi
  [ -n "$2" ] || { durably_gone "$file"; return; }
  mode=$(stat -c %a "$file" 2>/dev/null) && owns=$(stat -c %u:%g "$file")
  printf %s "$2" | base64 -d | durable_file "$file" "${mode:-0644}" && chown "${owns:-0:0}" "$file"
}
restore() {
  put_back "$daemon_json" "$daemon_text" && put_back "$dropin" "$dropin_text"
}
restart() {
  # shellcheck disable=SC2086 - a list of units
  systemctl restart --no-block docker.service $endpoints
}
