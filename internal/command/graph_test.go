// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const cronJobDocument = `bind batch/v1 k8s.io/api/batch/v1
alias Job batch/v1/Job

decl CronJobManager for CronJob {
    state {
        jobs []Job {
            labels/cronjob=${target.Name}-x
            owned
        }
    }
    action {
        // List all active jobs. And more.
        List(jobs)
        Clean(jobs, pods)
        Update()
    }
}
`

// execute runs the command line and returns what it printed.
func execute(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := New()
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func writeDocument(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestGraphAsText(t *testing.T) {
	want := `CronJobManager for CronJob
|-- state
|   ` + "`" + `-- jobs []Job
|       |-- labels/cronjob=${target.Name}-x
|       ` + "`" + `-- owned
` + "`" + `-- action
    |-- List(jobs)
    |-- Clean(jobs, pods)
    |   ` + "`" + `-- state pods is not declared
    ` + "`" + `-- Update()
`
	file := writeDocument(t, "a/b/cronjob.ctrlkit", cronJobDocument)
	top := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	for _, args := range [][]string{{file}, {filepath.Dir(file)}, {top + "/..."}, {"-"}} {
		stdout, stderr, err := execute(t, cronJobDocument, append([]string{"graph", "--ascii"}, args...)...)
		if diff := cmp.Diff(want, stdout); err != nil || stderr != "" || diff != "" {
			t.Errorf("graph %s: %v %s (-want +got):\n%s", args, err, stderr, diff)
		}
	}
}

func TestGraphFormatFollowsTheFileName(t *testing.T) {
	file := writeDocument(t, "cronjob.ctrlkit", cronJobDocument)
	for extension, want := range map[string]string{
		".svg": "✗ not declared", ".dot": `digraph "Managers"`, ".gv": "shape=cylinder", ".mmd": "flowchart LR", ".txt": "CronJobManager for CronJob",
	} {
		out := filepath.Join(t.TempDir(), "out"+extension)
		if _, stderr, err := execute(t, "", "graph", file, "-o", out); err != nil {
			t.Fatalf("%s: %v %s", extension, err, stderr)
		}
		if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, want %q in:\n%s", extension, err, want, text)
		}
	}
}

func TestGraphMistakes(t *testing.T) {
	file := writeDocument(t, "cronjob.ctrlkit", cronJobDocument)
	broken := writeDocument(t, "broken.ctrlkit", "decl X for Y {\n")
	empty := t.TempDir()
	for _, test := range []struct {
		name string
		args []string
		code int
		want string // in the error or on stderr
	}{
		{"unknown format", []string{file, "--format", "png"}, exitUsage, "text, dot, mermaid, svg"},
		{"unknown extension", []string{file, "-o", "x.png"}, exitUsage, "--format"},
		{"syntax", []string{broken}, exitFound, broken + ":"},
		{"no file", []string{filepath.Join(empty, "none.ctrlkit")}, exitUsage, "none.ctrlkit"},
		{"stdin and a file", []string{"-", file}, exitUsage, "standard input"},
		{"no documents", []string{empty}, exitUsage, "no .ctrlkit documents"},
		{"nothing declared", []string{writeDocument(t, "bind.ctrlkit", "bind v1 k8s.io/api/core/v1\n")}, exitFound, "declare no manager"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr, err := execute(t, "", append([]string{"graph"}, test.args...)...)
			if code := exitCode(err); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if said := stderr + errorText(err); !strings.Contains(said, test.want) || stdout != "" {
				t.Errorf("said %q and printed %q, want %q and nothing", said, stdout, test.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		err = errors.New("no error")
	}
	return err.Error()
}
