package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fddhdb": main, "letters": letters})
}

// letters is an encoder: of a text, or a path, it prints the number of its bytes and of its blanks,
// and zeros, five numbers in all. It misbehaves by the text. With LETTERS=last the two numbers are the last
// ones, as if its model had changed. With the argument three it prints three numbers, as another model.
func letters() {
	fmt.Fprintln(os.Stderr, "letters are counted")
	form := "%d,%d,0,0,0\n"
	switch {
	case len(os.Args) > 1 && os.Args[1] == "three":
		form = "%[2]d,1,%[1]d\n"
	case os.Getenv("LETTERS") == "last":
		form = "0,0,0,%d,%d\n"
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch text := in.Text(); text {
		case "die":
			os.Exit(3)
		case "obey":
			fmt.Fprint(os.Stderr, "\x1b]0;title\x07 \u009b2J \u202e")
			os.Exit(3)
		case "nothing":
			fmt.Println()
		case "long":
			fmt.Println("1,2,3,4,5,6")
		case "nan":
			fmt.Println("1,2,3,4,nan")
		case "chatter":
			fmt.Println("That is a hard one.")
		case "twice":
			fmt.Print("1,2,3,4,5\n1,2,3,4,5\n")
		case "refuse":
			fmt.Println(`{"error":"no words"}`)
		default:
			fmt.Printf(form, len(text), strings.Count(text, " "))
		}
	}
}

func TestProgramCallsNoMethodByName(t *testing.T) {
	effort.Slow(t)
	clitest.CallsNoMethodByName(t)
}

// What root may do, and others may not, is tried as another user.
func TestScriptOfPermissions(t *testing.T) {
	testfs.Nobody(t, "^TestScripts$/^permission$", "testdata/script/permission.txtar")
}

// TestScripts runs testdata/script, and TestLongScripts what takes seconds a file: a file for each verb or
// kind of mistake. Besides the commands of testscript there are
//
//	fails CODE COMMAND...          the command must exit with that code, and with
//	                               one error on stderr, prefixed once
//	npy FILE TYPE SHAPE VALUE...   makes a .npy: type f4, u1 or i8, shape 2x3 or 6
//	synth PREFIX ITEMS [CLASSES]   makes PREFIX_image.npy, _text.npy and _labels.npy
//	between REGEXP LEAST MOST      the number after it in stdout is in between
//	damage DIR                     changes bytes in what the database stores
//	damage-backup DIR              changes a byte in what backups store in a folder
//	empty DIR                      nothing may be in the folder, not even hidden
//	cpdir FROM TO                  copies a folder
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("the commands have tests of their own")
	}
	runScripts(t, "testdata/script")
}

func TestLongScripts(t *testing.T) {
	effort.Slow(t)
	runScripts(t, "testdata/script/long")
}

func runScripts(t *testing.T, dir string) {
	wiki := clitest.Must(filepath.Abs("../../../shared/data/wiki"))(t)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("WIKI", wiki)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "wiki":
				_, err := os.Stat(wiki)
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fails":   fails,
			"npy":     npyCommand,
			"codes":   clustered,
			"synth":   synthetic,
			"between": between,
			"damage":  damage,
			"empty":   empty,
			"cpdir":   copyDir,
			"service": service,
			"tensor":  tensor,
			"gz":      gz,

			"damage-backup": damageBackup,
		},
	})
}

func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var exit *exec.ExitError
	err = ts.Exec(args[1], args[2:]...)
	if !errors.As(err, &exit) {
		ts.Fatalf("%v, want exit code %d", err, want)
	}
	if exit.ExitCode() != want {
		ts.Fatalf("exit code %d, want %d", exit.ExitCode(), want)
	}
	text := ts.ReadFile("stderr")
	last := text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:]
	if !strings.HasPrefix(last, "fddhdb: ") || strings.Count(last, "fddhdb: ") != 1 {
		ts.Fatalf("the last line of stderr is not an error prefixed once: %q", last)
	}
}

// gz compresses a file to one with .gz behind its name.
func gz(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(ts.ReadFile(args[0])))
	ts.Check(errors.Join(err, w.Close(), os.WriteFile(ts.MkAbs(args[0]+".gz"), b.Bytes(), 0o666)))
}

func npyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: npy FILE TYPE SHAPE VALUE...")
	}
	descr := map[string]string{"f4": "<f4", "u1": "|u1", "i8": "<i8"}[args[1]]
	shape := strings.ReplaceAll(args[2], "x", ", ")
	if shape == args[2] {
		shape += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	b = append(b, dict...)
	for _, s := range args[3:] {
		x, err := strconv.ParseFloat(s, 64)
		ts.Check(err)
		switch args[1] {
		case "f4":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case "u1":
			b = append(b, byte(x))
		case "i8":
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(x)))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o666))
}

// clustered writes codes in groups of near ones.
func clustered(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: codes FILE ITEMS BITS")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	bits, err := strconv.Atoi(args[2])
	ts.Check(err)
	codes, err := synth.Codes(synth.Clustered, bits, n, 1)
	ts.Check(err)
	rows := make([][]uint8, n)
	for i := range rows {
		rows[i] = codes.At(i).AppendBytes(nil, bits)
	}
	ts.Check(writeMatrix(ts.MkAbs(args[0]), rows))
}

func synthetic(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: synth PREFIX ITEMS [CLASSES]")
	}
	cfg := synth.Config{Classes: 4, Seed: 1, Noise: 0.5}
	var err error
	cfg.Items, err = strconv.Atoi(args[1])
	ts.Check(err)
	if len(args) == 3 {
		cfg.Classes, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	data := synth.Pairs(cfg)
	for t, name := range []string{"image", "text"} {
		ts.Check(writeMatrix(ts.MkAbs(args[0]+"_"+name+".npy"), data.Vectors[t]))
	}
	labels := make([][]uint8, data.Items())
	for i, set := range data.Labels {
		labels[i] = make([]uint8, cfg.Classes)
		for _, l := range set {
			labels[i][l] = 1
		}
	}
	ts.Check(writeMatrix(ts.MkAbs(args[0]+"_labels.npy"), labels))
}

func writeMatrix[T float32 | uint8](path string, rows [][]T) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := npy.NewWriter[T](f, len(rows), len(rows[0]))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			return err
		}
	}
	return w.Close()
}

func between(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: between REGEXP LEAST MOST")
	}
	var bounds [2]float64
	var err error
	for i, s := range args[1:] {
		bounds[i], err = strconv.ParseFloat(s, 64)
		ts.Check(err)
	}
	number, err := regexp.Compile(args[0] + "([-+.e0-9]+)")
	ts.Check(err)
	found := number.FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("no number after %s", args[0])
	}
	x, err := strconv.ParseFloat(found[1], 64)
	ts.Check(err)
	if x < bounds[0] || x > bounds[1] {
		ts.Fatalf("%g is not between %g and %g", x, bounds[0], bounds[1])
	}
}

func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage DIR")
	}
	tables, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "store", "*.sst"))
	ts.Check(err)
	if len(tables) == 0 {
		ts.Fatalf("%s has no tables to damage", args[0])
	}
	for _, path := range tables {
		b, err := os.ReadFile(path)
		ts.Check(err)
		for i := 0; i < len(b)/2; i += 50 {
			b[i] ^= 0x55
		}
		ts.Check(os.WriteFile(path, b, 0o666))
	}
}

func damageBackup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage-backup DIR")
	}
	objects, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "objects", "*", "*"))
	ts.Check(err)
	if len(objects) == 0 {
		ts.Fatalf("%s has no objects to damage", args[0])
	}
	b, err := os.ReadFile(objects[0])
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(objects[0], b, 0o666))
}

func empty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: empty DIR")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, e := range entries {
		ts.Fatalf("%s is in %s", e.Name(), args[0])
	}
}

func copyDir(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cpdir FROM TO")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}
