// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/rings"
)

const tutorialPage = "../../docs/tutorial.md"

// The tutorial does what it says: its blocks are executed in order, in an empty directory, with the
// command of this checkout. The first words behind the fence say what a block is:
//
//	sh                 commands, in a shell; exit=1 if they end with this code, shard=1/60 if make
//	                   test runs this part of the simulation only
//	sh background      a command that runs until the next block that changes a file: its Ctrl-C
//	sh controlplane    commands that are left to make explore
//	text               what the block before has printed: these lines, in this order. "…" stands
//	                   for anything, and each duration for any other
//	go, yaml file=F    the file F
//	diff file=F        changes of the file F: hunks, separated by lines of "@@"
func TestTutorial(t *testing.T) {
	rings.Test(t, "compiles an operator, and runs its simulation twice")
	page, err := os.ReadFile(tutorialPage)
	if err != nil {
		t.Fatal(err)
	}
	blocks := tutorialBlocks(string(page))
	if len(blocks) < 20 {
		t.Fatalf("found %d blocks: is the expression right?", len(blocks))
	}
	r := newReader(t)
	for _, b := range blocks {
		r.do(b)
	}
	r.interrupt()
}

// A tutorialBlock is a fenced block of the page.
type tutorialBlock struct {
	line int
	info string
	text string
}

func (b tutorialBlock) is(words string) bool { return strings.HasPrefix(b.info+" ", words+" ") }

func (b tutorialBlock) String() string {
	return fmt.Sprintf("docs/tutorial.md:%d: ```%s\n%s", b.line, b.info, b.text)
}

func tutorialBlocks(page string) []tutorialBlock {
	var blocks []tutorialBlock
	for _, at := range regexp.MustCompile("(?ms)^```([a-z][^\n]*)\n(.*?)^```$").FindAllStringSubmatchIndex(page, -1) {
		blocks = append(blocks, tutorialBlock{
			line: strings.Count(page[:at[0]], "\n") + 1,
			info: page[at[2]:at[3]],
			text: page[at[4]:at[5]],
		})
	}
	return blocks
}

// A reader of the tutorial does what it says.
type reader struct {
	t       *testing.T
	dir     string // where the shell is
	env     []string
	address string // that takes the place of localhost:8080, which may be in use

	output  string // of the last commands
	skipped bool   // the last commands have not been executed
	running *exec.Cmd
	lines   <-chan string // of what is running
}

func newReader(t *testing.T) *reader {
	assets, err := controlplane.FindAssets(t.Context(), controlplane.AllParts, controlplane.BuildOptions{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	address, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, dir: t.TempDir(), address: address}
	// The linker needs half of the time without the tables for debuggers.
	r.env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-ldflags=-w", "KUBECONFIG=", "CTRLKIT_ENDPOINT=http://"+address,
		"PATH="+os.Getenv("PATH")+string(filepath.ListSeparator)+filepath.Dir(assets.Program("kubectl")))
	t.Cleanup(func() {
		if r.running != nil {
			r.running.Process.Kill() //nolint:errcheck // it may have ended
		}
	})
	return r
}

func (r *reader) do(b tutorialBlock) {
	r.t.Helper()
	switch {
	case b.is("sh controlplane") && !rings.Exploring():
		r.t.Logf("not executed: %s", b)
		r.skipped = true
	case b.is("sh background"):
		r.start(b)
	case b.is("sh"):
		r.run(b)
	case b.is("text"):
		r.compare(b)
	case b.option("file") != "":
		r.interrupt()
		r.change(b)
	default:
		r.t.Fatalf("no rule says what to do with this block: %s", b)
	}
}

// option returns what the words behind the fence say of it.
func (b tutorialBlock) option(name string) string {
	for _, word := range strings.Fields(b.info) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// shell returns a shell for commands. It writes the directory in which they end to a file.
func (r *reader) shell(b tutorialBlock, end string) *exec.Cmd {
	text := strings.ReplaceAll(b.text, "localhost:8080", r.address)
	if shard := b.option("shard"); shard != "" && !rings.Exploring() {
		text = strings.ReplaceAll(text, "ctrlkit sim ", "ctrlkit sim --shard "+shard+" ")
	}
	command := exec.Command("sh", "-ec", text+end)
	command.Dir, command.Env = r.dir, append(r.env[:len(r.env):len(r.env)], "PWD="+r.dir)
	return command
}

func (r *reader) run(b tutorialBlock) {
	r.t.Helper()
	where := filepath.Join(r.t.TempDir(), "pwd")
	command := r.shell(b, "\npwd > '"+where+"'\n")
	output, err := command.CombinedOutput()
	r.output, r.skipped = string(output), false
	code := 0
	fmt.Sscan(b.option("exit"), &code) //nolint:errcheck // zero without one
	if got := command.ProcessState.ExitCode(); got != code {
		r.t.Fatalf("exit code %d (%v), want %d: %s\nprinted:\n%s", got, err, code, b, output)
	}
	if dir, err := os.ReadFile(where); err == nil {
		r.dir = strings.TrimSpace(string(dir))
	}
}

// start starts an operator, and waits for nothing: compare does.
func (r *reader) start(b tutorialBlock) {
	r.t.Helper()
	r.interrupt()
	command := r.shell(tutorialBlock{text: "exec " + b.text}, "")
	out, in, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	command.Stdout, command.Stderr = in, in
	if err := command.Start(); err != nil {
		r.t.Fatal(err)
	}
	in.Close()
	lines := make(chan string, 10000)
	go func() {
		defer close(lines)
		defer out.Close()
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		io.Copy(io.Discard, out) //nolint:errcheck // a line that was too long
	}()
	r.running, r.lines, r.output, r.skipped = command, lines, "", false
}

var kubeconfig = regexp.MustCompile(`export (KUBECONFIG=\S+)`)

// compare compares what was printed with what the tutorial shows. What runs is given the time that
// the test has.
func (r *reader) compare(b tutorialBlock) {
	r.t.Helper()
	if r.skipped {
		return
	}
	want := pattern(b.text)
	if r.running != nil && r.output == "" {
		for line := range r.lines {
			r.output += line + "\n"
			if match := kubeconfig.FindStringSubmatch(line); match != nil {
				r.env = append(r.env, match[1])
			}
			if want.MatchString(r.output) {
				return
			}
		}
	}
	if !want.MatchString(r.output) {
		r.t.Fatalf("the commands print something else than %s\nprinted:\n%s", b, r.output)
	}
}

var (
	spaces    = regexp.MustCompile(`\s+`)
	durations = regexp.MustCompile(`\b\d+(\\\.\d+)?(ms|s|m)\b`)
)

// pattern matches a text with these lines in this order.
func pattern(text string) *regexp.Regexp {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line == "…" {
			continue
		}
		line = strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		line = durations.ReplaceAllString(line, `\d+(\.\d+)?(ms|s|m)(\d+s)?`)
		lines = append(lines, `(?m:^\s*`+spaces.ReplaceAllString(line, `[ \t]+`)+`\s*$)`)
	}
	return regexp.MustCompile(strings.Join(lines, `(?s:.*?)`))
}

// interrupt is the Ctrl-C for what runs.
func (r *reader) interrupt() {
	r.t.Helper()
	if r.running == nil {
		return
	}
	if err := r.running.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	var rest strings.Builder
	for line := range r.lines {
		rest.WriteString(line + "\n")
	}
	if err := r.running.Wait(); err != nil {
		r.t.Fatalf("after Ctrl-C: %v\nprinted:\n%s%s", err, r.output, rest.String())
	}
	r.running = nil
	r.env = append(r.env, "KUBECONFIG=")
}

func (r *reader) change(b tutorialBlock) {
	r.t.Helper()
	name := filepath.Join(r.dir, filepath.FromSlash(b.option("file")))
	content := b.text
	if b.is("diff") {
		before, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		if content, err = applied(string(before), b.text); err != nil {
			r.t.Fatalf("%v: %s\nthe file:\n%s", err, b, before)
		}
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// applied applies the hunks of a diff. Each of them must fit in one place.
func applied(content, diff string) (string, error) {
	for _, hunk := range strings.Split(diff, "@@\n") {
		var before, after strings.Builder
		for line := range strings.Lines(hunk) {
			switch {
			case line[0] == '-':
				before.WriteString(line[1:])
			case line[0] == '+':
				after.WriteString(line[1:])
			default:
				before.WriteString(strings.TrimPrefix(line, " "))
				after.WriteString(strings.TrimPrefix(line, " "))
			}
		}
		if n := strings.Count("\n"+content, "\n"+before.String()); n != 1 {
			return "", fmt.Errorf("a hunk fits in %d places:\n%s", n, hunk)
		}
		content = strings.TrimPrefix(strings.Replace("\n"+content, "\n"+before.String(), "\n"+after.String(), 1), "\n")
	}
	return content, nil
}
