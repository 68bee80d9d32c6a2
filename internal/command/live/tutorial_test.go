// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/command/commandtest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// The tutorial does what it says: its blocks are executed in order, in an empty directory, with the
// command of this checkout. The first words behind the fence say what a block is:
//
//	sh                 commands, in a shell; exit=1 if they end with this code, shard=1/60 if make
//	                   test runs this part of the simulation only, explore if they, and what they
//	                   print, are left to make explore
//	sh background      a command that runs until the next block that changes a file: its Ctrl-C
//	text               what the block before has printed: these lines, in this order. "…" stands
//	                   for anything, and each duration for any other
//	go, yaml file=F    the file F
//	diff file=F        changes of the file F: hunks, separated by lines of "@@"
func TestTutorial(t *testing.T) {
	rings.Test(t, "compiles an operator, and runs its simulation twice")
	page, err := os.ReadFile("../../../docs/tutorial.md")
	must(t, err)
	assets, err := controlplane.FindAssets(t.Context(), controlplane.AllParts, controlplane.BuildOptions{Progress: os.Stderr})
	must(t, err)
	file := filepath.Join(t.TempDir(), "tutorial.txtar")
	must(t, os.WriteFile(file, tutorialScript(string(page)), 0o600))
	caches, err := os.UserCacheDir()
	must(t, err)
	commandtest.Run(t, testscript.Params{
		Files: []string{file},
		Setup: func(env *testscript.Env) error {
			for name, value := range map[string]string{
				"HOME": env.WorkDir, "XDG_CACHE_HOME": caches,
				"PATH": env.Getenv("PATH") + string(os.PathListSeparator) + filepath.Dir(assets.Program("kubectl")),
			} {
				env.Setenv(name, value)
			}
			env.Values["running"] = &running{env: env}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"begin": begin, "shell": shell, "shows": shows, "interrupt": interrupt, "change": change,
		},
	})
}

// The kustomization has all samples that the tutorial adds, for kubectl apply -k.
func TestSamplesOfTheTutorial(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tutorial.md")
	must(t, err)
	samples := regexp.MustCompile("(?m)^```yaml file=config/samples/(.*)$").FindAllStringSubmatch(string(page), -1)
	if len(samples) == 0 {
		t.Error("the tutorial adds no sample")
	}
	_, kustomization, _ := strings.Cut(string(page), "```diff file=config/samples/kustomization.yaml\n")
	kustomization, _, _ = strings.Cut(kustomization, "```")
	for _, sample := range samples {
		if !strings.Contains(kustomization, "\n+- "+sample[1]+"\n") {
			t.Errorf("%s is not added to the kustomization: %s", sample[1], kustomization)
		}
	}
}

// tutorialScript makes a script of the page.
func tutorialScript(page string) []byte {
	var script strings.Builder
	archive := &txtar.Archive{}
	later := "" // what the lines of a block that make explore runs begin with
	for _, at := range regexp.MustCompile("(?ms)^```([a-z][^\n]*)\n(.*?)^```$").FindAllStringSubmatchIndex(page, -1) {
		info, text := page[at[2]:at[3]], page[at[4]:at[5]]
		option := func(name, byDefault string) string {
			for _, word := range strings.Fields(info) {
				if value, ok := strings.CutPrefix(word, name+"="); ok {
					return value
				}
			}
			return byDefault
		}
		line := strings.Count(page[:at[0]], "\n") + 1
		block := fmt.Sprintf("$WORK/block-%d", line)
		fmt.Fprintf(&script, "# docs/tutorial.md:%d\n", line)
		switch kind, _, _ := strings.Cut(info, " "); {
		case strings.HasPrefix(info, "sh background"):
			later = ""
			fmt.Fprintf(&script, "interrupt\nbegin sh %s\n", block)
			text = "exec 2>&1\nexec " + text
		case kind == "sh":
			later = ""
			if slices.Contains(strings.Fields(info), "explore") {
				later = "[explore] "
			}
			fmt.Fprintf(&script, "%sshell %s %s\n", later, option("exit", "0"), block)
		case kind == "text":
			fmt.Fprintf(&script, "%sshows %s\n", later, block)
		default:
			fmt.Fprintf(&script, "interrupt\nchange %s %s %s\n", kind, option("file", "?"), block)
		}
		if shard := option("shard", ""); shard != "" && !rings.Exploring() {
			text = strings.ReplaceAll(text, "ctrlkit sim ", "ctrlkit sim --shard "+shard+" ")
		}
		name := strings.TrimPrefix(block, "$WORK/")
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	archive.Comment = []byte(script.String() + "interrupt\n")
	return txtar.Format(archive)
}

// shell runs the commands of a file in a shell, and stays where it ends.
func shell(ts *testscript.TestScript, _ bool, args []string) {
	commandtest.Exits(ts, false, []string{args[0], "sh", "-ec", `exec 2>&1; . "$1"; pwd >"$WORK/pwd"`, "sh", args[1]})
	if dir, err := os.ReadFile(ts.MkAbs(filepath.Join(ts.Getenv("WORK"), "pwd"))); err == nil {
		ts.Check(ts.Chdir(strings.TrimSpace(string(dir))))
	}
	ts.Setenv("PRINTED", "stdout")
}

var exportedKubeconfig = regexp.MustCompile(`export KUBECONFIG=(\S+)`)

// shows compares what was printed last with what the tutorial shows. What runs is given the time that
// the test has.
func shows(ts *testscript.TestScript, _ bool, args []string) {
	want := printedPattern(ts.ReadFile(args[0]))
	if r := ts.Value("running").(*running); r.cmd != nil && ts.Getenv("PRINTED") == "" {
		sees(ts, false, []string{want, r.out})
		ts.Setenv("KUBECONFIG", exportedKubeconfig.FindStringSubmatch(ts.ReadFile(r.out))[1])
		return
	}
	if !regexp.MustCompile(want).MatchString(ts.ReadFile("stdout")) {
		ts.Fatalf("the commands print something else than\n%s", ts.ReadFile(args[0]))
	}
}

var (
	spaces    = regexp.MustCompile(`\s+`)
	durations = regexp.MustCompile(`\b\d+(\\\.\d+)?(ms|s|m)\b`)
)

// printedPattern matches a text with these lines in this order.
func printedPattern(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line == "…" {
			continue
		}
		line = strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		line = durations.ReplaceAllString(line, `<?\d+(\.\d+)?(ms|s|m)(\d+s)?`)
		lines = append(lines, `(?m:^\s*`+spaces.ReplaceAllString(line, `[ \t]+`)+`\s*$)`)
	}
	return strings.Join(lines, `(?s:.*?)`)
}

// interrupt is the Ctrl-C for what runs.
func interrupt(ts *testscript.TestScript, _ bool, _ []string) {
	r := ts.Value("running").(*running)
	if r.cmd == nil {
		return
	}
	ts.Check(r.cmd.Process.Signal(os.Interrupt))
	ends(ts, false, []string{"0"})
	*r = running{env: r.env}
	ts.Setenv("KUBECONFIG", "")
}

// change writes a file, or changes one by the hunks of a diff. Each of them must fit in one place.
func change(ts *testscript.TestScript, _ bool, args []string) {
	name, content := ts.MkAbs(args[1]), ts.ReadFile(args[2])
	if args[0] == "diff" {
		hunks := strings.Split(content, "@@\n")
		content = "\n" + ts.ReadFile(name)
		for _, hunk := range hunks {
			before, after := "\n", "\n"
			for line := range strings.Lines(hunk) {
				rest := line[1:]
				switch line[0] {
				case '-':
					before += rest
				case '+':
					after += rest
				case ' ':
					before, after = before+rest, after+rest
				default: // an empty line
					before, after = before+line, after+line
				}
			}
			if n := strings.Count(content, before); n != 1 {
				ts.Fatalf("a hunk fits in %d places:\n%s", n, hunk)
			}
			content = strings.Replace(content, before, after, 1)
		}
		content = content[1:]
	}
	ts.Check(os.WriteFile(name, []byte(content), 0o644))
}
