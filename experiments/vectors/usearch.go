package vectors

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed usearch/main.cpp
var usearchProgram []byte

// compile makes the program of usearch/main.cpp in a folder, with the headers that are in the
// folder source, and returns its path.
func compile(ctx context.Context, folder, source string) (string, error) {
	with := func(header string) string {
		for _, dir := range []string{"", "include", "numkong/include"} {
			dir = filepath.Join(source, dir)
			if _, err := os.Stat(filepath.Join(dir, header)); err == nil {
				return dir
			}
		}
		return ""
	}
	headers := with("usearch/index_dense.hpp")
	if headers == "" {
		return "", fmt.Errorf("-usearch %s: the folder has neither usearch/index_dense.hpp nor include/usearch/index_dense.hpp", source)
	}
	compiler, err := compilerCommand()
	if err != nil {
		return "", err
	}
	text, program := filepath.Join(folder, "usearch.cpp"), filepath.Join(folder, "usearch.exe")
	if err := os.WriteFile(text, usearchProgram, 0o600); err != nil {
		return "", err
	}
	// Loops that sum become vector instructions only if sums may be in any order.
	args := append(compiler[1:], "-std=c++17", "-O3", "-march=native", "-ffast-math", "-pthread", "-w", "-I", headers)
	if kernels := with("numkong/spatial.h"); kernels != "" {
		args = append(args, "-I", kernels, "-DWITH_NUMKONG=1", "-DNK_DYNAMIC_DISPATCH=0", "-DNK_NATIVE_F16=0", "-DNK_NATIVE_BF16=0")
	}
	args = append(args, "-o", program, text)
	if said, err := exec.CommandContext(ctx, compiler[0], args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile USearch by %s: %w: %.2000s", compiler[0], err, said)
	}
	return program, nil
}

// compilerCommand returns the C++ compiler, with arguments that $CXX may have.
func compilerCommand() ([]string, error) {
	if words := strings.Fields(os.Getenv("CXX")); len(words) > 0 {
		return words, nil
	}
	for _, name := range []string{"c++", "g++"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, errors.New("-usearch: there is no C++ compiler: neither $CXX, c++ nor g++")
}
