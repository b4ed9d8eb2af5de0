#!/bin/sh
# Repeats the experiments of docs/EVALUATION.md:
#
#   sh docs/eval/figures.sh FDDHDB DATA OUT
#
# DATA holds the folders of the sets wiki and ucidigits. The figures go to docs/eval,
# the measurements, a JSON object a line, to OUT, as do the databases.
set -eu
fddhdb=$1 data=$2 out=$3
figures=$(dirname "$0")
mkdir -p "$out"

# experiment SET KIND [FLAGS]: of the database of a set.
experiment() {
  set=$1 kind=$2
  shift 2
  "$fddhdb" experiment "$out/$set.db" "$kind" --vectors image="$data/$set/query_image.npy" \
    --vectors text="$data/$set/query_text.npy" --labels "$data/$set/query_labels.npy" \
    --json --plot "$figures/$set-$kind.svg" "$@" > "$out/$set-$kind.json"
}

# load SET: makes its database.
load() {
  rm -rf "$out/$1.db"
  "$fddhdb" import "$out/$1.db" --init --vectors image="$data/$1/train_image.npy" \
    --vectors text="$data/$1/train_text.npy" --labels "$data/$1/train_labels.npy"
}

for set in wiki ucidigits; do
  load $set
  seeds=3
  if [ $set = ucidigits ]; then seeds=1; fi
  experiment $set ablation --seeds 5
  experiment $set bits --seeds 5 --grid bits=16,32,64,128
  experiment $set convergence --seeds $seeds
  experiment $set sensitivity --seeds $seeds
  "$fddhdb" train "$out/$set.db" > "$out/$set-train.txt"
  "$fddhdb" eval "$out/$set.db" --vectors image="$data/$set/query_image.npy" \
    --vectors text="$data/$set/query_text.npy" --labels "$data/$set/query_labels.npy" \
    --json --plot "$figures/$set-64.svg" > "$out/$set-64.json"
done
experiment wiki size --plot "$out/wiki-size.svg"

# A database that goes on learning.
for set in nuswide pairs; do
  go run ./examples/stream -set $set -items 4000 -seeds 4 -out "$figures/stream-$set.svg" > "$out/stream-$set.txt"
done

# Many labels, which only a generated set has.
go -C experiments run . makeset --set multilabel --items 2000 --queries 400 "$out/multilabel"
data=$out
load multilabel
experiment multilabel convergence --seeds 1 --anchors 300 --features image=raw --features text=raw \
  --map image=rbf --map text=rbf --gamma image=.1 --gamma text=.1
