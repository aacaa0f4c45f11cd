#!/usr/bin/env bash
# Usage errors end with status 2, bad files with status 1, both with one
# sentence on standard error; help and version with status 0 on standard output.
#   command_lines.sh IZH-RT [IZHC]
set -u
rt=$1 izhc=${2:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0 count=0

# expect STATUS TEXT COMMAND...: TEXT must be in what the command says.
expect() {
  local status=$1 text=$2 out
  shift 2
  count=$((count + 1))
  out=$("$@" 2>"$folder/stderr" </dev/null)
  local found=$?
  if [ $found != "$status" ]; then
    echo "FAILED: '$*' ended with $found, not $status: $(cat "$folder/stderr")"
    failures=$((failures + 1))
  elif [ "$status" = 0 ] && [[ $out != *"$text"* ]]; then
    echo "FAILED: '$*' does not say '$text' but '$out'"
    failures=$((failures + 1))
  elif [ "$status" != 0 ] && ! grep -qF -- "$text" "$folder/stderr"; then
    echo "FAILED: '$*' does not say '$text' but '$(cat "$folder/stderr")'"
    failures=$((failures + 1))
  fi
}

: >"$folder/empty"
head -c 100000 /dev/zero >"$folder/zeros"
printf '[1, 2' >"$folder/cut.json"
printf '[]' >"$folder/none.json"
printf '[1, 99999999999]' >"$folder/large.json"
printf '[1]' >"$folder/one.json"
mkfifo "$folder/pipe"
full() { "$@" >/dev/full; }
closed() { "$@" >&-; }
endless() { "$@" </dev/zero; }
# The reader has left before the first byte comes.
unread() {
  { sleep 0.1 && "$@"; } 2>"$folder/said" | :
  local status=${PIPESTATUS[0]}
  [ ! -s "$folder/said" ] || { cat "$folder/said" >&2; return 9; }
  return "$status"
}

# ---- izh-rt
expect 0 perplexity "$rt" --help
expect 0 'izh-rt 0' "$rt" --version
expect 2 missing "$rt"
for command in run bench logits perplexity tokenize info verify; do
  expect 0 FILE "$rt" $command --help
  expect 2 --nonsense "$rt" $command "$folder/empty" --nonsense
  expect 2 'FILE is missing' "$rt" $command
done
expect 0 'cpu ' "$rt" devices
expect 0 '"devices"' "$rt" devices --json
expect 2 --nonsense "$rt" devices --nonsense
expect 2 'one word too many' "$rt" info a b
expect 2 "no command and no file 'nonsense'" "$rt" nonsense "$folder/empty" -p a
expect 2 '-p TEXT or -f FILE' "$rt" run "$folder/empty"
expect 2 'exclude' "$rt" run "$folder/empty" -p a -f b
expect 2 '--temp takes a number' "$rt" run "$folder/empty" -p a --temp hot
expect 2 '--temp takes a number' "$rt" run "$folder/empty" -p a --temp nan
expect 2 '-n takes an integer' "$rt" run "$folder/empty" -p a -n -1
expect 2 '-n takes an integer' "$rt" run "$folder/empty" -p a -n 1x
expect 2 '-n needs a value' "$rt" run "$folder/empty" -p a -n
expect 2 '--seed' "$rt" run "$folder/empty" -p a --seed 18446744073709551616
expect 2 '--stop' "$rt" run "$folder/empty" -p a --stop ''
expect 2 '--threads' "$rt" run "$folder/empty" -p a --threads 0
expect 2 '--threads' "$rt" bench "$folder/empty" --threads 1,,2
expect 2 '--threads' "$rt" bench "$folder/empty" --threads two
expect 2 '--contexts' "$rt" bench "$folder/empty" --contexts 1,x
expect 2 '--contexts' "$rt" bench "$folder/empty" --contexts 1,
expect 2 'exclude' "$rt" bench "$folder/empty" --json --markdown
expect 2 'exclude' "$rt" bench "$folder/empty" --depth 5 --contexts 1
expect 2 '-n is 0' "$rt" bench "$folder/empty" -n 0 --svg x
expect 2 '--sustain' "$rt" bench "$folder/empty" --sustain 1
expect 2 'the same file' "$rt" bench "$folder/empty" --svg "$folder/empty"
expect 2 '--load takes map|read' "$rt" run "$folder/empty" -p a --load=copy
expect 2 'nothing to measure' "$rt" bench "$folder/empty" -p 0 -n 0
expect 2 '--tokens' "$rt" logits "$folder/empty"
expect 2 '--json takes no value' "$rt" info "$folder/empty" --json=yes
expect 2 '--top-p takes a number' "$rt" run "$folder/empty" -p a --top-p 0
expect 2 'FILE is empty' "$rt" info ''
for option in --variant --require --device -f; do
  expect 2 "$option needs a value" "$rt" run "$folder/empty" -p a $option ''
done
expect 2 'the same file' "$rt" logits "$folder/zeros" --tokens "$folder/one.json" -o "$folder/zeros"
expect 2 'the same file' "$rt" logits "$folder/zeros" --tokens "$folder/one.json" -o "$folder/../${folder##*/}/one.json"
for lost in full closed; do
  expect 1 'cannot write to standard output: ' $lost "$rt" --help
done
expect 0 '' unread "$rt" --help
for file in empty zeros missing; do
  expect 1 "$folder/$file" "$rt" "$folder/$file" -p hello
  expect 1 "$folder/$file" "$rt" run "$folder/$file" -p hello
  expect 1 "$folder/$file" "$rt" bench "$folder/$file"
  expect 1 "$folder/$file" "$rt" info "$folder/$file"
  expect 1 "$folder/$file" "$rt" verify "$folder/$file"
  expect 1 "$folder/$file" "$rt" tokenize "$folder/$file" -p hello
  expect 1 "$folder/$file" "$rt" logits "$folder/$file" --tokens "$folder/one.json" -o "$folder/out.npy"
done
for file in cut none large missing; do
  expect 1 "$file.json" "$rt" logits "$folder/zeros" --tokens "$folder/$file.json" -o "$folder/out.npy"
done
[ ! -e "$folder/out.npy" ] || { echo "FAILED: out.npy was left behind"; failures=$((failures + 1)); }

# Folders and models are no artifacts, and there are hints for what is not there.
mkdir "$folder/model"
cp "$folder/zeros" "$folder/model/model.safetensors"
printf '{}' >"$folder/model/config.json"
expect 1 "izhc compile $folder/model'" "$rt" "$folder/model" -p a
expect 1 "izhc compile $folder/model'" "$rt" "$folder/model/model.safetensors" -p a
for kind in rocm gpu cuda: cuda:x; do
  expect 1 "--device is '$kind', but it can be cpu, cuda" "$rt" run "$folder/zeros" -p a --device $kind
done
expect 0 '"features": [' "$rt" devices --json
expect 0 "the model's context, at most 4096" "$rt" chat --help

# Texts that never end, and models that nobody writes.
expect 1 "/dev/zero' is a device" "$rt" logits "$folder/zeros" --tokens /dev/zero -o "$folder/out.npy"
expect 1 "$folder/pipe" "$rt" info "$folder/pipe"
expect 1 "$folder/pipe' is a pipe that nothing writes to" "$rt" logits "$folder/zeros" --tokens "$folder/pipe" -o "$folder/out.npy"

# ---- izhc
if [ -n "$izhc" ]; then
  expect 1 "/dev/zero' is a device" "$izhc" tokenize "$folder/zeros" -f /dev/zero
  expect 1 "'-' is a device" endless "$izhc" tokenize "$folder/zeros" -f -
  expect 1 "/dev/zero' is a device" "$izhc" render "$folder/zeros" --context /dev/zero
  expect 1 "/dev/zero" "$izhc" compile /dev/zero -o "$folder/out.izh"
  for command in compile inspect 'tokenize -p a' ; do
    expect 1 "$folder/pipe" "$izhc" $command "$folder/pipe"
  done
  for command in "render $folder/pipe --context $folder/one.json" \
    "render $folder/zeros --context $folder/pipe" "tokenize $folder/zeros -f $folder/pipe"; do
    expect 1 "$folder/pipe' is a pipe that nothing writes to" "$izhc" $command
  done
  expect 1 "$folder/pipe" "$izhc" export "$folder/pipe" -o "$folder/out.gguf"
fi
if [ -n "$izhc" ]; then
  expect 0 compile "$izhc" --help
  expect 0 'izhc 0' "$izhc" --version
  expect 2 '' "$izhc"
  expect 2 "no command 'nonsense'" "$izhc" nonsense
  expect 2 "no command 'verify'" "$izhc" verify --help
  # One value each: what follows is the model.
  expect 1 "$folder/zeros" "$izhc" compile --tensor-type 'a=q4_0' --tensor-type 'b=q4_0' "$folder/zeros" -o "$folder/out.izh"
  expect 2 "mean 'compile'" "$izhc" compiel --help
  expect 2 'compile MODEL --quant' "$izhc" quantize a b
  expect 2 "mean 'compile'" "$izhc" compiel a
  expect 2 'izh-rt run' "$izhc" run a
  expect 2 '-o -' "$izhc" compile "$folder/zeros" -o -
  [ ! -e ./- ] || { echo "FAILED: a file named - was written"; failures=$((failures + 1)); }
  for file in model.safetensors config.json; do
    for command in compile 'tokenize -p a' 'render --context c.json'; do
      expect 1 "give its folder, $folder/model" "$izhc" $command "$folder/model/$file"
    done
  done
  expect 0 'MODELS...' "$izhc" check --help
  expect 2 'izhc compile --help' "$izhc" compile
  for command in compile inspect tokenize; do
    expect 0 MODEL "$izhc" compile --help
    expect 2 --nonsense "$izhc" $command "$folder/empty" --nonsense
    expect 2 required "$izhc" $command
  done
  expect 2 "gops=NUMBER" "$izhc" compile "$folder/empty" --stats --machine gbps=5
  expect 2 "not 'fast'" "$izhc" compile "$folder/empty" --stats --machine fast
  expect 2 --stats "$izhc" compile "$folder/empty" --machine gbps=5,gops=5
  expect 0 reference "$izhc" targets
  expect 2 --nonsense "$izhc" targets --nonsense
  expect 2 'no target' "$izhc" compile "$folder/zeros" --target=pdp11
  expect 2 'no stage' "$izhc" compile "$folder/zeros" --print-ir-after=nowhere
  expect 2 "no recipe 'nonsense'; known are" "$izhc" compile "$folder/zeros" --quant=nonsense
  expect 2 'not available yet' "$izhc" compile "$folder/zeros" --emit=exe
  expect 2 '' "$izhc" compile "$folder/zeros" --emit=elf
  expect 2 'is a folder' "$izhc" compile "$folder/zeros" -o "$folder"
  for bits in nan -nan inf -1 0 1.9 33 many; do
    expect 2 'a number from 2 to 32' "$izhc" compile "$folder/zeros" "--target-bpw=$bits"
  done
  expect 2 'the model itself' "$izhc" compile "$folder/zeros" -o "$folder/zeros"
  expect 2 'the model itself' "$izhc" export "$folder/zeros" -o "$folder/zeros"
  expect 2 'the model itself' "$izhc" calibrate "$folder/zeros" -f "$folder/zeros" -o "$folder/zeros"
  expect 2 'a device or a pipe' "$izhc" compile "$folder/zeros" -o "$folder/pipe"
  [ -p "$folder/pipe" ] || { echo "FAILED: the pipe was replaced"; failures=$((failures + 1)); }
  for option in -o --target --print-ir-after --pre-tokenizer --quant; do
    expect 2 "not ''" "$izhc" compile "$folder/zeros" $option ''
  done
  expect 2 "not ''" "$izhc" compile ''
  expect 2 "not ''" "$izhc" inspect ''
  expect 2 "not ''" "$izhc" tokenize "$folder/zeros" -f ''
  for lost in full closed; do
    expect 1 'izhc: cannot write to standard output' $lost "$izhc" targets
    expect 1 'izhc: cannot write to standard output' $lost "$izhc" --help
  done
  expect 0 '' unread "$izhc" targets
  expect 0 '' unread "$izhc" --help
  expect 2 '' "$izhc" tokenize "$folder/zeros"
  for file in empty zeros missing; do
    expect 1 "$folder/$file" "$izhc" compile "$folder/$file" -o "$folder/out.izh"
    expect 1 "$folder/$file" "$izhc" inspect "$folder/$file"
    expect 1 "$folder/$file" "$izhc" tokenize "$folder/$file" -p hello
  done
  expect 2 'At least 2 required' "$izhc" check "$folder/zeros" -f "$folder/empty"
  expect 2 '--file is required' "$izhc" check "$folder/zeros" "$folder/zeros"
  expect 2 '--window' "$izhc" check "$folder/zeros" "$folder/zeros" -f "$folder/empty" --window 3
  expect 1 "$folder/missing" "$izhc" check "$folder/missing" "$folder/zeros" -f "$folder/empty"
  expect 1 "$folder/zeros" "$izhc" check "$folder/zeros" "$folder/zeros" -f "$folder/empty"
  [ ! -e "$folder/out.izh" ] || { echo "FAILED: out.izh was left behind"; failures=$((failures + 1)); }
fi

echo "command lines: $((count - failures)) passed, $failures failed"
[ $failures = 0 ]
