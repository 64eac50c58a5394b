# Ask for a word at the beginning of a prompt that fills nine tenths of the longest sequence: two short requests say first how
# many tokens a sentence has. Parameters: url; models (where the server says its longest sequence); model; longest (tokens, 0
# where the settings do not say it); least (tokens below which no prompt is long); tokens (of the answer); limit (seconds for one
# answer). Prints the longest sequence and each answer, each followed by a line `STATUS SECONDS`; then a status of its own.
sentences() { # how many, and the most tokens of the answer: the request's body
  awk -v count="$1" -v tokens="$2" -v model="$model" 'BEGIN {
    printf "{\"model\":\"%s\",\"temperature\":0,\"max_tokens\":%d,\"messages\":[{\"role\":\"user\",\"content\":\"", model, tokens
    printf "The code is 4719. "
    for (i = 1; i <= count; i++) printf "Entry %06d of this list has nothing to say. ", i
    printf "What is the code? Answer with the code only.\"}]}"
  }'
}
answer() {
  sentences "$1" "$2" | curl --silent --noproxy '*' --max-time "$limit" ${rackwright_login:+--header "@$rackwright_login"} \
    --header 'Content-Type: application/json' --data-binary @- --write-out '\n%{http_code} %{time_total}\n' "$url" | head -c 100000
}
served() { # the longest sequence of the model, as vLLM and SGLang say it
  curl --silent --noproxy '*' --max-time 20 ${rackwright_login:+--header "@$rackwright_login"} "$models" |
    sed -n 's/.*"max_model_len": *\([0-9][0-9]*\).*/\1/p' | sed 1q
}
[ "$longest" != 0 ] || longest=$(served)
printf '{"longest": %d}\n200 0\n' "${longest:=0}"
if [ "$longest" -lt "$least" ]; then
  printf '\n200 0'
  exit
fi
[ "$tokens" -lt $((longest / 20)) ] || tokens=$((longest / 20))
length() { sed -n 's/.*"prompt_tokens": *\([0-9][0-9]*\).*/\1/p' | sed 1q; }
few=$(answer 20 16)
more=$(answer 60 16)
short=$(printf '%s' "$few" | length) long=$(printf '%s' "$more" | length)
printf '%s\n%s\n' "$few" "$more"
if [ "${long:-0}" -gt "${short:-0}" ]; then
  answer $((20 + (longest * 9 / 10 - short) * 40 / (long - short))) "$tokens"
fi
printf '\n200 0'
