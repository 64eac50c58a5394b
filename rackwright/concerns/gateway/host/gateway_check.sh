# Let HAProxy check the new files before any of them counts. Parameters: folder new surplus.
trap 'status=$?; rm -f "$new/check.cfg"; [ "$status" = 0 ] || rm -rf "$new"' EXIT
for path in "$folder"/*.map "$folder"/haproxy.cfg "$folder"/certificates/*; do
  case " $surplus " in *" $path "*) continue ;; esac
  [ ! -f "$path" ] || [ -e "$new${path#"$folder"}" ] || cp -p "$path" "$new${path#"$folder"}" || exit 1
done
# The new file names the others by the paths that they will have.
sed "s,$folder/,$new/,g" "$new/haproxy.cfg" >"$new/check.cfg" || exit 1
if ! text=$(haproxy -c -f "$new/check.cfg" 2>&1); then
  printf '%s\n' "$text" | sed -n "s,$new/check.cfg,$folder/haproxy.cfg,g; s,$new/,$folder/,g; /^\[ALERT\]\|^\[WARNING\]/p" | head -n 15 >&2
  exit 1
fi
