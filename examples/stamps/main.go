package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
)

const packaged = "/usr/share/tuxpaint/stamps" // where Debian's package has them

func main() {
	log.SetFlags(0)
	log.SetPrefix("stamps: ")
	folder := flag.String("stamps", "", "folder of Tux Paint's stamps; default "+packaged+", or drawn ones")
	keep := flag.String("db", "", "new folder: keep the database there")
	flag.Parse()
	stamps, err := gather(*folder)
	if err == nil {
		err = run(context.Background(), stamps, *keep, flag.Args(), os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// gather returns the stamps of a folder or, where none is given and none is installed, drawn ones.
func gather(folder string) ([]stamp, error) {
	if folder == "" {
		folder = packaged
		if _, err := os.Stat(folder); err != nil {
			fmt.Println("These stamps are drawn. For real ones: apt install tuxpaint-stamps-default")
			return drawStamps()
		}
	}
	return readStamps(folder)
}

// run learns from two thirds of the stamps, and prints what the others ask and answer.
func run(ctx context.Context, stamps []stamp, folder string, words []string, out io.Writer) error {
	d, err := open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{
		Modalities: []db.Modality{
			{Name: picture, Dim: perceptual.LookDim},
			{Name: english, Dim: wordsDim, Sparse: true},
			{Name: greek, Dim: wordsDim, Sparse: true}},
		Fields: []db.Field{{Name: "name", Type: db.String, Words: true}}})
	if err != nil {
		return err
	}
	learn, answer, ask := split(stamps)

	e := example{collection: c, out: out, group: map[string]string{}}
	batch := d.NewBatch()
	for _, s := range learn {
		it := s.item(s.key, modalities...)
		it.Labels = []string{s.group}
		err = errors.Join(err, e.put(batch, it, s))
	}
	for _, s := range answer { // a picture that has no name, and names that have no picture
		for _, m := range modalities {
			if s.has(m) {
				err = errors.Join(err, e.put(batch, s.item(s.key+" ("+m+")", m), s))
			}
		}
	}
	if err = errors.Join(err, batch.Commit(ctx)); err != nil {
		return err
	}
	began := time.Now()
	trained, err := c.Train(ctx, db.TrainOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Learned %d bits in %.1f s from %d stamps in %d groups: pictures with names and labels.\n"+
		"The other stamps have none: %d answer, each picture and name on its own, and %d ask.\n\n",
		trained.Bits, time.Since(began).Seconds(), len(learn), len(sizes(stamps)), len(answer), len(ask))
	if err := errors.Join(e.show(ctx, ask, words), e.measure(ctx, ask)); err != nil {
		return err
	}
	if folder != "" {
		fmt.Fprintf(out, "\nSee the stamps: fddhdb explore %q --open\n", folder)
	}
	return nil
}

// open makes a database in a new folder or, without one, in memory.
func open(folder string) (*db.DB, error) {
	if folder == "" {
		return db.OpenMemory(nil)
	}
	if _, err := os.Stat(folder); err == nil {
		return nil, fmt.Errorf("%q exists: give -db a new folder", folder)
	}
	return db.Open(folder, nil)
}

// An example is a collection of stamps and what we know of them.
type example struct {
	collection *db.Collection
	out        io.Writer
	group      map[string]string // by key
	truth      [][]string        // the groups in the order of the items
}

func (e *example) put(batch *db.Batch, it *db.Item, s stamp) error {
	e.group[it.Key], e.truth = s.group, append(e.truth, []string{s.group})
	return batch.Put(e.collection, it)
}

var kinds = map[string]string{picture: "pictures", english: "English names", greek: "Greek names"}

const unlabelled = "NOT has(label)"

// show lets a few stamps ask, not chosen for their answers, and then the words.
func (e *example) show(ctx context.Context, ask []stamp, words []string) error {
	const shown = 4
	fmt.Fprintf(e.out, "%d of those that ask, evenly chosen. + marks an answer of the same group.\n", shown)
	var asking []stamp
	for i := range shown {
		asking = append(asking, ask[(2*i+1)*len(ask)/(2*shown)])
	}
	for _, word := range words {
		language := english
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Greek, r) }) {
			language = greek
		}
		asking = append(asking, stamp{key: word, names: map[string]string{language: word}})
	}
	for _, s := range asking {
		fmt.Fprintf(e.out, "\n%s\n", quote(s.key))
		for i, from := range modalities {
			to := modalities[(i+1)%len(modalities)]
			if !s.has(picture) {
				to = picture
			}
			if !s.has(from) {
				continue
			}
			if err := e.search(ctx, s, from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *example) search(ctx context.Context, s stamp, from, to string) error {
	q := s.query(from, to)
	q.Where, q.K, q.Include = unlabelled, 3, db.IncludeFields
	found, err := e.collection.Search(ctx, q)
	if err != nil {
		return fmt.Errorf("%q: %w", s.key, err)
	}
	what := "the picture"
	if from != picture {
		what = quote(s.names[from])
	}
	fmt.Fprintf(e.out, "  %s finds %s:", what, kinds[to])
	for _, hit := range found.Hits {
		mark, shown := " ", strings.TrimSuffix(hit.Key, " ("+picture+")")
		if s.group == e.group[hit.Key] {
			mark = " +"
		}
		if name, ok := hit.Item.Fields["name"].(string); ok {
			shown = name
		}
		fmt.Fprint(e.out, mark, quote(shown))
	}
	fmt.Fprintln(e.out)
	return nil
}

// quote cuts a long text, and nothing in it can change a terminal.
func quote(text string) string {
	if letters := []rune(text); len(letters) > 34 {
		text = string(letters[:33]) + "…"
	}
	return strconv.Quote(text)
}

// measure prints mAP of those that ask among those that answer.
func (e *example) measure(ctx context.Context, ask []stamp) error {
	fmt.Fprintf(e.out, "\nmAP: 1 where all of the group come first\n%23s%9s%9s%9s\n", picture, english, greek, "chance")
	for _, from := range modalities {
		m := db.Evaluation{Where: unlabelled, Truth: e.truth,
			Queries: map[string][][]float32{}, Sparse: map[string][]db.Sparse{}}
		for _, s := range ask {
			if !s.has(from) {
				continue
			}
			if q := s.query(from, ""); from == picture {
				m.Queries[from] = append(m.Queries[from], q.Vector)
			} else {
				m.Sparse[from] = append(m.Sparse[from], *q.Sparse)
			}
			m.Labels = append(m.Labels, []string{s.group})
		}
		measured, err := e.collection.Evaluate(ctx, m)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.out, "%-14s", from+" finds")
		for _, to := range modalities {
			figure := "-"
			for _, r := range measured {
				if r.To == to {
					figure = fmt.Sprintf("%.2f", r.Hamming.MAP)
				}
			}
			fmt.Fprintf(e.out, "%9s", figure)
		}
		fmt.Fprintf(e.out, "%9.2f\n", e.chance(m.Labels))
	}
	return nil
}

// chance returns the expected mAP of a random order. For n answers with r right ones it is
// (H + (r-1)/(n-1) (n-H)) / n, where H = 1 + 1/2 + ... + 1/n. A right answer has rank i with probability 1/n,
// and each of the i-1 answers before it is right with probability (r-1)/(n-1).
func (e *example) chance(asked [][]string) float64 {
	n, harmonic, right := 0., 0., map[string]float64{}
	for key, group := range e.group {
		if strings.HasSuffix(key, " ("+picture+")") {
			n++
			harmonic += 1 / n
			right[group]++
		}
	}
	sum := 0.
	for _, labels := range asked {
		if r := right[labels[0]]; r > 0 {
			sum += (harmonic + (r-1)/(n-1)*(n-harmonic)) / n
		}
	}
	return sum / float64(len(asked))
}
