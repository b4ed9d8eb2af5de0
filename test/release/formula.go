package main

import (
	"fmt"
	"strings"
)

// formula returns a formula of Homebrew, which installs the archives of the release.
// sums are the SHA-256 sums of the archives by file name.
func formula(version string, sums map[string]string) (string, error) {
	var b strings.Builder
	number := strings.TrimPrefix(version, "v")
	fmt.Fprintf(&b, `class Fddhdb < Formula
  desc "%s"
  homepage "%s"
  version "%s"
  license "Apache-2.0"

`, strings.ToUpper(summary[:1])+summary[1:], homepage, number)
	for _, system := range []struct{ block, os string }{{"on_macos", "darwin"}, {"on_linux", "linux"}} {
		fmt.Fprintf(&b, "  %s do\n", system.block)
		for _, cpu := range []struct{ block, arch string }{{"on_arm", "arm64"}, {"on_intel", "amd64"}} {
			name := archiveName(version, platform{system.os, cpu.arch})
			sum, ok := sums[name]
			if !ok {
				return "", fmt.Errorf("the formula needs %s, which is not built", name)
			}
			fmt.Fprintf(&b, "    %s do\n      url \"%s\"\n      sha256 \"%s\"\n    end\n", cpu.block,
				downloadURL(version, name), sum)
		}
		b.WriteString("  end\n\n")
	}
	b.WriteString(`  def install
    bin.install "fddhdb"
    man1.install "fddhdb.1"
    bash_completion.install "completion/fddhdb.bash" => "fddhdb"
    zsh_completion.install "completion/_fddhdb"
    fish_completion.install "completion/fddhdb.fish"
  end

  test do
    system bin/"fddhdb", "init", "a.db", "--codes", "8"
    assert_equal "0\n", shell_output("#{bin}/fddhdb count a.db")
  end
end
`)
	return b.String(), nil
}

// downloadURL returns the address of a file of a release.
func downloadURL(version, name string) string {
	return fmt.Sprintf("%s/releases/download/%s/%s", homepage, version, name)
}
