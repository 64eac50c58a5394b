# Ask what runs now, and judge the answers inside its own image: by the control machine's rules, without its help.
# Parameters: questions (lines "ask NUMBER SECONDS SCRIPT STDIN") rows (JSON) program (base64) image seconds;
# and those of remove_helper.sh, container and label.
# It comes after port_holder.sh. Says an event `row JSON` for each row. Ends 0 when the endpoint has proved itself.
taken=$(port_holder) theirs=stranger
if [ -n "$taken" ]; then
  # Nothing is asked: the process that listens would get the key, and answer.
  printf '%s\n' "$theirs" >"$cause"
  printf '%s\n' "$taken" | tee "$reason"
  exit 1
fi
answers=$JOB/answers
rm -rf "$answers"
mkdir -p "$answers" || exit 1
ask() {
  printf %s "$4" | timeout -k 10 "$2" sh -c "$3" >"$answers/$1" 2>"$answers/$1.error" && return
  [ $? = 124 ] && printf '%s\n' "no answer within $2 s" >>"$answers/$1.error"
  rm -f "$answers/$1"
}
# Prints who had the port when a question was asked: a line that no server can send, since nothing was sent with a status of 0.
met() {
  for answer in "$answers"/*[0-9]; do
    case $(tail -n 1 "$answer" 2>/dev/null) in '0 '*) ;; *) continue ;; esac
    sed -n '1s/^[a-z]*: \(port [0-9]* is taken by .*\)/\1/p' "$answer"
    tail -n 2 "$answer" | sed -n 's/^curl: (7) not asked: \(port [0-9]* is taken by .*\)/\1/p'
  done
}
printf %s "$rows" >"$answers/rows.json"
printf %s "$program" | base64 -d >"$answers/judge.pyz"
eval "$questions"
judge() {
  timeout -k 10 "$seconds" docker run --rm --name "$container" --label "$label=judge" --log-driver none --network none --userns host --runtime runc \
    --env NVIDIA_VISIBLE_DEVICES=void --cap-drop ALL --cap-add DAC_OVERRIDE --security-opt no-new-privileges \
    --user 0:0 --entrypoint python3 --volume "$answers:/answers:ro" "$image" -I -S -B /answers/judge.pyz /answers \
    >"$JOB/verdict" 2>"$JOB/verdict.error" </dev/null
}
alone judge
status=$?
# The image's own Python has written it: no more of it is taken than Rackwright's judge writes.
head -c 262144 "$JOB/verdict" | sed -n 's/^row //p' | while IFS= read -r row; do event row "$row"; done
case $status in
  0) exit 0 ;;
  3)
    head -c 262144 "$JOB/verdict" | sed -n 's/^reason //p' >"$reason"
    printf 'check\n' >"$cause"
    [ -z "$(met)" ] || printf '%s\n' "$theirs" >"$cause"
    ;;
  *)
    remove_helper
    printf '%s\n' "its answers could not be judged in its image (status $status): $(tail -n 1 "$JOB/verdict.error" | cut -c1-300)" | tee "$reason"
    ;;
esac
exit 1
