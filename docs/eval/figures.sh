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
out=$(cd "$out" && pwd)
go -C "$figures/../../experiments" build -o "$out/experiments" .

# experiment SET NAME [FLAGS]
experiment() {
  set=$1 name=$2
  shift 2
  "$out/experiments" "$name" "$data/$set" --json --plot "$figures/$set-$name.svg" "$@" > "$out/$set-$name.json"
}

for set in wiki ucidigits; do
  seeds=3
  if [ $set = ucidigits ]; then seeds=1; fi
  experiment $set ablation --seeds 5
  experiment $set methods --methods BATCH,SCRATCH,FDDH-published,FDDH --bits 16,32,64,128 --split labelled
  experiment $set convergence --seeds $seeds
  experiment $set sensitivity --seeds $seeds
  rm -rf "$out/$set.db"
  "$fddhdb" import "$out/$set.db" --init --vectors image="$data/$set/train_image.npy" \
    --vectors text="$data/$set/train_text.npy" --labels "$data/$set/train_labels.npy"
  "$fddhdb" train "$out/$set.db" > "$out/$set-train.txt"
  "$fddhdb" eval "$out/$set.db" --vectors image="$data/$set/query_image.npy" \
    --vectors text="$data/$set/query_text.npy" --labels "$data/$set/query_labels.npy" \
    --json --plot "$figures/$set-64.svg" > "$out/$set-64.json"
done

# Many labels, which only a generated set has.
"$out/experiments" makeset --set multilabel --items 2000 --queries 400 "$out/multilabel"
data=$out
experiment multilabel convergence --seeds 1 --anchors 300 --features image=raw --features text=raw \
  --map image=rbf --map text=rbf --gamma image=.1 --gamma text=.1
