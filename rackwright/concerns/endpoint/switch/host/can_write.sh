# Stop nothing before what a switch writes can be written: rolling back writes the same files, and would fail like the switch.
# Parameters: unit units home. The file $reason gets what refuses and the next command, $cause what kind of refusal it is.
refused() { # kind, what refuses, next command
  printf '%s\n' "$2; next, on this host: $3; then the same command again" | tee "${reason:-/dev/null}"
  printf '%s\n' "$1" >"${cause:-/dev/null}"
  exit 1
}
for folder in "$units" "$home"; do
  [ -d "$folder" ] || continue
  probe=$folder/.rackwright-probe
  words=$( (printf 'probe\n' >"$probe" && sync "$probe") 2>&1)
  taken=$?
  rm -f "$probe"
  [ $taken != 0 ] || continue
  case $words in
    *'Read-only'*) refused readonly "$folder is on a file system that is mounted read-only" "findmnt --target $folder; journalctl -k --grep 'remount|I/O error'" ;;
    *'No space'*) refused disk "$folder has no room left" "df -h $folder; df -i $folder" ;;
    *'quota'*) refused quota "the disk quota of $folder is used up" "quota -v; repquota -a" ;;
    *'not permitted'*) refused immutable "$folder is immutable: not even root can write to it" "lsattr -d $folder; chattr -i $folder" ;;
    *) refused disk "$folder takes no file ($(printf '%s' "$words" | tr '\n' ' ' | cut -c1-200))" "df -h $folder; journalctl -k --lines 50" ;;
  esac
done
for file in "$units/$unit" "$home/binding" "$home/proven-binding" "$home/history" "$home/last-switch" "$home/switched" "$home/switched-at"; do
  # Of what is not there, and where nothing knows attributes, lsattr says nothing.
  words=$(lsattr -d "$file" 2>/dev/null)
  case ${words%% *} in
    *i*) refused immutable "$file is immutable: not even root can write it" "chattr -i $file" ;;
    *a*) refused immutable "$file is append-only: not even root can replace it" "chattr -a $file" ;;
  esac
done
