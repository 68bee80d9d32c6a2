// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// A misuse is the arguments with which a command goes wrong; nil where it can't.
type misuse struct {
	few, many []string // arguments
	missing   []string // a file that does not exist
	dead      []string // neither the cluster nor the operator answers
}

var words = strings.Fields

// misuses are those of each command.
var misuses = map[string]misuse{
	"":                          {many: words("nope")},
	"check":                     {missing: words("./nothing")},
	"completion":                {many: words("nope")},
	"completion bash":           {many: words("x")},
	"completion fish":           {many: words("x")},
	"completion powershell":     {many: words("x")},
	"completion zsh":            {many: words("x")},
	"controlplane":              {many: words("nope")},
	"controlplane build":        {many: words("x")},
	"controlplane env":          {many: words("x")},
	"controlplane start":        {many: words("x")},
	"create":                    {many: words("nope")},
	"create api":                {many: words("x")},
	"diff":                      {few: words("a"), many: words("a b c"), missing: words(". . -f none.yaml"), dead: words(". .")},
	"explain":                   {few: words(""), many: words("a b c"), missing: words("cm/x --kubeconfig none"), dead: words("cm/x")},
	"fix":                       {missing: words("./nothing")},
	"fmt":                       {missing: words("./nothing")},
	"generate":                  {missing: words("./nothing")},
	"generate finalizer-policy": {few: words("--finalizer a"), many: words("--finalizer a b c")},
	"graph":                     {missing: words("./nothing")},
	"help":                      {many: words("nope")},
	"import":                    {many: words("a b"), missing: words("--kubeconfig none"), dead: words("")},
	"init":                      {many: words("a b")},
	"lsp":                       {many: words("x")},
	"orphans":                   {many: words("x"), missing: words("--kubeconfig none"), dead: words("")},
	"plan":                      {few: words(""), many: words("a b"), missing: words(". --from none.yaml"), dead: words(".")},
	"rbac":                      {missing: words("./nothing/...")},
	"record":                    {few: words(""), missing: words("-o - cm/x --kubeconfig none"), dead: words("-o - cm/x")},
	"replay":                    {few: words("a"), many: words("a b c"), missing: words("none.yaml .")},
	"run":                       {few: words(""), many: words("a b"), missing: words("./nothing")}, // without a cluster: run.txtar
	"sim":                       {missing: words("./nothing")},
	"sim report":                {few: words(""), missing: words("none.json")},
	"top":                       {many: words("x"), missing: words("--kubeconfig none"), dead: words("")},
	"version":                   {many: words("x")},
	"vet":                       {missing: words("./nothing")},
	"view":                      {many: words("a b"), missing: words("--kubeconfig none"), dead: words("")},
}

// deadCluster sets a cluster and an operator that do not answer, for the commands of a test.
func deadCluster(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dead")
	writeKubeconfig(t, file, "https://127.0.0.1:1")
	t.Setenv("KUBECONFIG", file)
	t.Setenv("CTRLKIT_ENDPOINT", "http://127.0.0.1:1")
}

// ended runs a command as Main does, and returns all that it has printed, and its exit code.
func ended(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	var all strings.Builder
	root := New()
	root.SetArgs(args)
	root.SetOut(printable.NewWriter(&all))
	root.SetErr(printable.NewWriter(&all))
	used, err := root.ExecuteContextC(t.Context())
	report(printable.NewWriter(&all), used, err)
	return all.String(), exitCode(err)
}

// Every command ends with the exit code of the manual when it goes wrong in one of these ways, and
// says where to find help.
func TestEachCommandGoesWrongAsTheManualSays(t *testing.T) {
	manual, err := os.ReadFile("../../docs/reference.md")
	must(t, err)
	codes := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+): .* \| (\d) \| (\d) \|$`).FindAllSubmatch(manual, -1) {
		codes[string(row[1])] = []string{string(row[2]), string(row[3])}
	}
	deadCluster(t)
	t.Chdir(t.TempDir())
	walk(New(), func(cmd *cobra.Command) {
		path := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
		m, ok := misuses[path]
		if !ok {
			t.Errorf("%q has no row", path)
		}
		for how, ways := range map[string][][]string{"usage": {{"--no-such-flag"}, m.few, m.many}, "missing": {m.missing}, "unreachable": {m.dead}} {
			for _, args := range ways {
				if args == nil {
					continue
				}
				args = slices.Concat(words(path), args)
				text, code := ended(t, args...)
				want, usage := codes[how][0], how != "unreachable"
				if cmd.Annotations[ownCodes] != "" {
					want = codes[how][1]
				}
				if fmt.Sprint(code) != want || strings.Contains(text, " --help' for usage.") != usage || strings.Contains(text, "arg(s)") {
					t.Errorf("%q: exit code %d, want %s:\n%s", args, code, want, text)
				}
			}
		}
	})
}

// A password in the address of an operator is not printed, whatever is wrong with it.
func TestNoCommandPrintsThePasswordOfAnEndpoint(t *testing.T) {
	deadCluster(t)
	for path, m := range misuses {
		if m.dead == nil || path == "plan" || path == "diff" {
			continue
		}
		for _, endpoint := range []string{"http://user:canary@127.0.0.1:1", "http//user:canary@127.0.0.1", "http://user:canary@ 127.0.0.1", "ftp://user:canary@127.0.0.1"} {
			args := slices.Concat(words(path), m.dead, []string{"--endpoint", endpoint})
			if text, code := ended(t, args...); code == 0 || strings.Contains(text, "canary") {
				t.Errorf("%q: exit code %d:\n%s", args, code, text)
			}
		}
	}
}

// Each command that needs the go command says so, and where to get it, on a machine without.
func TestWithoutGo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	if err := os.WriteFile("a.ctrlkit", []byte("bind v1 \"k8s.io/api/core/v1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"check a.ctrlkit", "generate a.ctrlkit", "run --on memory .", "sim .", "vet .", "rbac .", "controlplane build"} {
		root := New()
		root.SetArgs(strings.Fields(line))
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		used, err := root.ExecuteContextC(t.Context())
		report(&out, used, err)
		if err == nil || !strings.Contains(out.String(), installGo) {
			t.Errorf("ctrlkit %s: %v\n%s", line, err, out.String())
		}
	}
}
