package beam

import (
	"bufio"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// A shard file has the items of a task that belong to a shard, in order: the head of each, by encoding/gob,
// and then the numbers of its vectors, for which gob would be slow. It ends with a head without a key, and
// the CRC-32C of all before it. It lives as long as a run.

// itemHead is an item without its vectors.
type itemHead struct {
	Key     string
	Labels  []string
	Fields  map[string]any
	Payload []byte
	Code    []byte
	Vectors []vectorHead // sorted by name
}

// vectorHead describes a vector.
type vectorHead struct {
	Name    string
	Numbers int
	Sparse  bool // as many indices come before the numbers
}

func init() {
	gob.Register(time.Time{})
}

// maxVectorNumbers bounds the size of a vector that a shard file may announce.
const maxVectorNumbers = 1 << 24

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A shardWriter writes a shard file.
type shardWriter struct {
	w   *bufio.Writer
	sum *crcWriter
	gob *gob.Encoder
	n   int // items
	b   []byte
}

// crcWriter adds the bytes that pass to a checksum.
type crcWriter struct {
	w   io.Writer
	sum uint32
}

func (c *crcWriter) Write(b []byte) (int, error) {
	c.sum = crc32.Update(c.sum, castagnoli, b)
	return c.w.Write(b)
}

func newShardWriter(to io.Writer) *shardWriter {
	w := &shardWriter{w: bufio.NewWriterSize(to, 1<<14)}
	w.sum = &crcWriter{w: w.w}
	w.gob = gob.NewEncoder(w.sum)
	return w
}

// put writes an item under a key.
func (w *shardWriter) put(key string, item *db.Item) error {
	h := itemHead{Key: key, Labels: item.Labels, Fields: item.Fields, Payload: item.Payload, Code: item.Code}
	for name, x := range item.Vectors {
		h.Vectors = append(h.Vectors, vectorHead{name, len(x), false})
	}
	for name, x := range item.Sparse {
		h.Vectors = append(h.Vectors, vectorHead{name, len(x.Value), true})
	}
	slices.SortFunc(h.Vectors, func(a, b vectorHead) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	if err := w.gob.Encode(&h); err != nil {
		return err
	}
	w.b = w.b[:0]
	for _, v := range h.Vectors {
		value := item.Vectors[v.Name]
		if v.Sparse {
			x := item.Sparse[v.Name]
			value = x.Value
			for _, j := range x.Index {
				w.b = binary.LittleEndian.AppendUint32(w.b, j)
			}
		}
		for _, x := range value {
			w.b = binary.LittleEndian.AppendUint32(w.b, math.Float32bits(x))
		}
	}
	w.n++
	_, err := w.sum.Write(w.b)
	return err
}

// close ends the file; it does not close the underlying writer.
func (w *shardWriter) close() error {
	if err := w.gob.Encode(&itemHead{}); err != nil {
		return err
	}
	if err := binary.Write(w.w, binary.LittleEndian, w.sum.sum); err != nil {
		return err
	}
	return w.w.Flush()
}

// crcReader adds the bytes that pass to a checksum.
type crcReader struct {
	r   *bufio.Reader
	sum uint32
}

func (c *crcReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.sum = crc32.Update(c.sum, castagnoli, b[:n])
	return n, err
}

// ReadByte keeps gob from reading ahead.
func (c *crcReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.sum = crc32.Update(c.sum, castagnoli, []byte{b})
	}
	return b, err
}

// errShardFile says that a shard file is damaged or incomplete.
var errShardFile = errors.New(
	"a file of items of a shard is damaged: remove the temporary folder, and run it again")

// readShard calls f with the items of a shard file. An item belongs to f.
func readShard(from io.Reader, f func(*db.Item) error) error {
	r := &crcReader{r: bufio.NewReaderSize(from, 1<<16)}
	dec := gob.NewDecoder(r)
	for {
		var h itemHead
		if err := dec.Decode(&h); err != nil {
			return fmt.Errorf("%w: %w", errShardFile, err)
		}
		if h.Key == "" {
			break
		}
		item := &db.Item{Key: h.Key, Labels: h.Labels, Fields: h.Fields, Payload: h.Payload, Code: h.Code}
		for _, v := range h.Vectors {
			if v.Numbers < 0 || v.Numbers > maxVectorNumbers {
				return fmt.Errorf("%w: a vector of %d numbers", errShardFile, v.Numbers)
			}
			var index []uint32
			if v.Sparse {
				index = make([]uint32, v.Numbers)
				if err := readNumbers(r, func(i int, x uint32) { index[i] = x }, v.Numbers); err != nil {
					return err
				}
			}
			value := make([]float32, v.Numbers)
			if err := readNumbers(r, func(i int, x uint32) { value[i] = math.Float32frombits(x) },
				v.Numbers); err != nil {
				return err
			}
			if v.Sparse {
				if item.Sparse == nil {
					item.Sparse = map[string]db.Sparse{}
				}
				item.Sparse[v.Name] = db.Sparse{Index: index, Value: value}
				continue
			}
			if item.Vectors == nil {
				item.Vectors = map[string][]float32{}
			}
			item.Vectors[v.Name] = value
		}
		if err := f(item); err != nil {
			return err
		}
	}
	sum := r.sum
	var stored uint32
	if err := binary.Read(r.r, binary.LittleEndian, &stored); err != nil || stored != sum {
		return fmt.Errorf("%w: its checksum does not match", errShardFile)
	}
	return nil
}

// readNumbers calls f with n numbers of four bytes.
func readNumbers(r io.Reader, f func(i int, x uint32), n int) error {
	var block [4096]byte
	for i := 0; i < n; {
		b := block[:min(len(block), 4*(n-i))]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("%w: %w", errShardFile, err)
		}
		for ; len(b) > 0; b = b[4:] {
			f(i, binary.LittleEndian.Uint32(b))
			i++
		}
	}
	return nil
}
