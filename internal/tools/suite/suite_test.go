// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseTable(t *testing.T) {
	parts, err := parseTable("# a comment\n\n./external ^TestX$/^token$ 2 -pairs 2000 -sim.shard {i}/{n}\n./dsl ^$ 1 -fuzz ^FuzzParse$ -fuzztime 20s\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range parts {
		got = append(got, p.key()+": "+strings.Join(p.arguments("seed"), " "))
	}
	want := []string{
		"./external ^TestX$/^token$ 1/2: -run ^TestX$/^token$ -pairs 2000 -sim.shard 1/2",
		"./external ^TestX$/^token$ 2/2: -run ^TestX$/^token$ -pairs 2000 -sim.shard 2/2",
		"./dsl ^FuzzParse$: -run ^$ -fuzz ^FuzzParse$ -fuzztime 20s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []string{"./x ^TestX$", "./x ^TestX$ none", "./x ^TestX$ 0", "./x ^TestX$ 2 -pairs 3"} {
		if _, err := parseTable("\n" + wrong); err == nil || !strings.Contains(err.Error(), "explorations.txt:2") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)
	testFlag     = regexp.MustCompile(`flag\.\w+\("([^"]+)"`)
)

// Each exploration runs a test that exists, with flags that exist.
func TestExplorationsExist(t *testing.T) {
	parts, err := parseTable(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if p.i > 1 {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", "..", p.dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no tests in %s", p.key(), p.dir)
			continue
		}
		var names, flags []string
		if strings.HasPrefix(p.dir, "./examples/") { // their simulations share flags
			shared, err := filepath.Glob("../../../examples/internal/exampletest/*.go")
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, shared...)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range testFunction.FindAllSubmatch(src, -1) {
				names = append(names, string(match[1]))
			}
			for _, match := range testFlag.FindAllSubmatch(src, -1) {
				flags = append(flags, string(match[1]))
			}
		}
		name, _, _ := strings.Cut(p.exploration(), "/")
		if pattern, err := regexp.Compile(name); err != nil || !slices.ContainsFunc(names, pattern.MatchString) {
			t.Errorf("%s: no test matches %s: %v", p.key(), name, err)
		}
		for _, arg := range p.flags {
			flag := strings.TrimLeft(arg, "-")
			if arg == flag || strings.HasPrefix(flag, "sim.") || strings.HasPrefix(flag, "rapid.") || slices.Contains([]string{"fuzz", "fuzztime", "skip", "timeout", "count"}, flag) {
				continue
			}
			if !slices.Contains(flags, flag) {
				t.Errorf("%s: the tests have no flag %s", p.key(), arg)
			}
		}
	}
}

func TestOrder(t *testing.T) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := memory{
		"./failed ^TestX$":  {Code: "1", At: day},
		"./fresh ^TestX$":   {Code: "1", Passed: true, At: day.Add(time.Hour)},
		"./done ^TestX$":    {Code: "1", Passed: true, At: day},
		"./changed ^TestX$": {Code: "0", Passed: true, At: day},
	}
	names := []string{"./fresh", "./done", "./changed", "./new", "./failed"}
	order := func(m memory, seed string) (got []string) {
		var parts []part
		for _, name := range names {
			parts = append(parts, part{dir: name, run: "^TestX$", i: 1, n: 1})
		}
		m.order(parts, seed, func(part) string { return "1" })
		for _, p := range parts {
			got = append(got, p.dir)
		}
		return got
	}
	got := order(m, "a")
	slices.Sort(got[1:3])
	if diff := cmp.Diff([]string{"./failed", "./changed", "./new", "./done", "./fresh"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(order(memory{}, "a"), order(memory{}, "a")); diff != "" {
		t.Errorf("the same seed: %s", diff)
	}
	if slices.Equal(order(memory{}, "a"), order(memory{}, "b")) && slices.Equal(order(memory{}, "a"), order(memory{}, "c")) {
		t.Error("other seeds give the same order")
	}
}

// Each exploration runs before a second part of one, however many parts they have.
func TestOrderOfParts(t *testing.T) {
	parts, err := parseTable("./a ^TestMany$ 50 -part {i}\n./a ^TestMany$ 50 -from {i}\n./a ^TestOnce$ 1\n./b ^TestOnce$ 1")
	if err != nil {
		t.Fatal(err)
	}
	memory{}.order(parts, "a", func(part) string { return "" })
	var first []string
	for _, p := range parts[:4] {
		first = append(first, strings.Join(append([]string{p.dir, p.run}, p.flags...), " "))
	}
	slices.Sort(first)
	if diff := cmp.Diff([]string{"./a ^TestMany$ -from {i}", "./a ^TestMany$ -part {i}", "./a ^TestOnce$", "./b ^TestOnce$"}, first); diff != "" {
		t.Error(diff)
	}
}

func TestMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bin", "explored.json")
	m, err := readMemory(file)
	if err != nil || len(m) != 0 {
		t.Fatalf("%v, %v of a file that does not exist", m, err)
	}
	m["x"] = entry{Code: "1", Passed: true, Seconds: 2, At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	if err := m.write(file); err != nil {
		t.Fatal(err)
	}
	again, err := readMemory(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readMemory(file); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("of a broken file: %v", err)
	}
}

func TestShard(t *testing.T) {
	var parts, all []part
	for i := range 7 {
		parts = append(parts, part{dir: string(rune('a' + i)), i: 1, n: 1})
	}
	for _, shard := range []string{"1/3", "2/3", "3/3"} {
		some, err := shardOf(parts, shard)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b part) int { return strings.Compare(a.dir, b.dir) })
	if diff := cmp.Diff(parts, all, cmp.AllowUnexported(part{})); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []string{"0/3", "4/3", "x"} {
		if _, err := shardOf(parts, wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// What go test prints of a package that passes, of one with a test that fails, of one that does not
// compile, and of one without tests.
const events = `{"Action":"start","Package":"github.com/ctrlkit/ctrlkit/good"}
{"Action":"run","Package":"github.com/ctrlkit/ctrlkit/good","Test":"TestQuiet"}
{"Action":"output","Package":"github.com/ctrlkit/ctrlkit/good","Test":"TestQuiet","Output":"noise\n"}
{"Action":"pass","Package":"github.com/ctrlkit/ctrlkit/good","Test":"TestQuiet","Elapsed":1}
{"Action":"pass","Package":"github.com/ctrlkit/ctrlkit/good","Elapsed":1.5}
{"Action":"output","Package":"github.com/ctrlkit/ctrlkit/bad","Test":"TestBad","Output":"    bad_test.go:7: want 1\n"}
{"Action":"fail","Package":"github.com/ctrlkit/ctrlkit/bad","Test":"TestBad","Elapsed":0}
{"Action":"fail","Package":"github.com/ctrlkit/ctrlkit/bad","Elapsed":0.5}
{"ImportPath":"github.com/ctrlkit/ctrlkit/broken","Action":"build-output","Output":"broken.go:3:1: syntax error\n"}
{"ImportPath":"github.com/ctrlkit/ctrlkit/broken","Action":"build-fail"}
{"Action":"fail","Package":"github.com/ctrlkit/ctrlkit/broken","Elapsed":0,"FailedBuild":"github.com/ctrlkit/ctrlkit/broken"}
{"Action":"skip","Package":"github.com/ctrlkit/ctrlkit/none","Elapsed":0}
`

func TestReport(t *testing.T) {
	var out bytes.Buffer
	err := report(&out, "", func() ([]stage, error) {
		return []stage{func() ([]result, error) { return goTest{}.read(strings.NewReader(events), &out) }}, nil
	})
	if !errors.Is(err, errFailed) {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{"ok      1.5s  ./good", "FAIL    0.5s  ./bad", "bad_test.go:7: want 1", "syntax error", "packages: 1 passed, 2 failed", "FAIL ./broken"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(out.String(), "noise") || strings.Contains(out.String(), "./none\n") && !strings.Contains(out.String(), "slowest") {
		t.Error("what passes is printed")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A scriptBinary has the tests of every package.
type scriptBinary string

func (scriptBinary) Has(string) bool { return true }

func (b scriptBinary) Command(ctx context.Context, _ string, args ...string) (*exec.Cmd, error) {
	return exec.CommandContext(ctx, string(b), args...), nil
}

func TestExplorerRunsAndRemembers(t *testing.T) {
	var out bytes.Buffer
	e := explorer{out: &out, seed: "s", memory: filepath.Join(t.TempDir(), "m.json"), known: memory{}, code: map[string]string{}}
	script := filepath.Join(t.TempDir(), "x.test")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$EXPLORE $*\"\ncase $2 in *Bad*) exit 1;; esac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e.binary = scriptBinary(script)
	parts := []part{{dir: dir, run: "^TestBad$", i: 1, n: 1, flags: []string{"-pairs", "3"}}, {dir: dir, run: "^TestGood$", i: 1, n: 1}}
	left, err := e.runAll(context.Background(), parts, time.Now().Add(time.Hour))
	if err != nil || len(left) > 0 {
		t.Fatalf("%v left, %v", left, err)
	}
	e.summarize(nil, time.Second)
	for _, want := range []string{"1 -test.run ^TestBad$ -pairs 3", "again: EXPLORE=1 go test " + dir + " -run '^TestBad$' -pairs 3", "parts: 1 passed, 1 failed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if good, bad := e.known[parts[1].key()], e.known[parts[0].key()]; !good.Passed || bad.Passed || bad.At.IsZero() {
		t.Errorf("remembered: %+v", e.known)
	}
	e.known[parts[0].key()] = entry{Seconds: 100}
	left, err = e.runAll(context.Background(), []part{parts[1], parts[0]}, time.Now().Add(50*time.Second))
	if err != nil || len(left) != 1 || left[0].run != "^TestBad$" {
		t.Errorf("%v left, %v: want what does not fit into the time", left, err)
	}
}
