# The place may end in * where the commit was unknown when it was recorded.
for folder in $place $place.partial; do
  case $folder in
    *.partial) [ ! -d "$folder/.parts" ] || rm -rf "$folder" ;;
    *) [ ! -f "$folder/$manifest" ] || rm -rf "$folder" ;;
  esac
done
rmdir --ignore-fail-on-non-empty "${place%/*}" 2>/dev/null
exit 0
