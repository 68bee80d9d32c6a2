// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/command/commandtest"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// TestRun runs scripts with "ctrlkit run" and the operator in testdata/greeter, $GREETER, in memory
// and on a real control plane: $PLANE, whose programs are in $PROGRAMS. They have these commands
// more:
//
//	begin PROGRAM ...      starts a program, whose output goes to the files out and err
//	sees PATTERN FILE      waits until a file has a match
//	signal INT|TERM|KILL   sends a signal to the program
//	ends CODE [DURATION]   waits for the end of the program, and wants this exit code
//	runs NAME...           wants processes with these names; negated, none of them
//	gone [DURATION]        wants that no process remains, at once or after this time
func TestRun(t *testing.T) {
	rings.Test(t, "compiles an operator")
	assets, err := controlplane.FindAssets(t.Context(), controlplane.AllParts, controlplane.BuildOptions{Progress: os.Stderr})
	must(t, err)
	t.Setenv("GOWORK", "off") // as in the scripts, for which the program is up to date then
	const greeter = "testdata/greeter"
	project, err := run.FindProject(t.Context(), greeter)
	must(t, err)
	if _, err := project.Build(t.Context(), io.Discard, os.Stderr); err != nil { // before several runs do it at the same time
		t.Fatal(err)
	}
	caches, err := os.UserCacheDir()
	must(t, err)
	for _, plane := range []run.Where{run.OnMemory, run.OnControlPlane} {
		t.Run(string(plane), func(t *testing.T) {
			commandtest.Run(t, testscript.Params{
				Dir: "testdata/run",
				Setup: func(env *testscript.Env) error {
					for name, value := range map[string]string{
						"GREETER": filepath.Join(env.Getenv("CHECKOUT"), "internal/command/live", greeter), "PLANE": string(plane), "XDG_CACHE_HOME": caches,
						"PATH": env.Getenv("PATH") + string(os.PathListSeparator) + assets.Dir, "PROGRAMS": assets.Dir,
					} {
						env.Setenv(name, value)
					}
					env.Values["running"] = &running{env: env}
					return nil
				},
				Condition: func(name string) (bool, error) {
					return name == string(plane) || name == "explore" && rings.Exploring(), nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"begin": begin, "sees": sees, "signal": signalProgram, "ends": ends, "runs": runs, "gone": gone,
				},
			})
		})
	}
}

// running is the program that a script has begun.
type running struct {
	env  *testscript.Env
	out  string // its standard output, a file
	cmd  *exec.Cmd
	done context.Context // until the program ends
}

func begin(ts *testscript.TestScript, _ bool, args []string) {
	r := ts.Value("running").(*running)
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	problems, err := os.Create(ts.MkAbs("err"))
	ts.Check(err)
	r.out = out.Name()
	r.cmd = exec.Command("sh", append([]string{"-c", `exec "$@"`, "sh"}, args...)...)
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = ts.MkAbs("."), r.env.Vars, out, problems
	ts.Check(r.cmd.Start())
	ts.Setenv("PRINTED", "")
	var end context.CancelFunc
	r.done, end = context.WithCancel(context.Background())
	cmd, done := r.cmd, r.done
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		end()
	}()
	ts.Defer(func() {
		_ = cmd.Process.Kill() // it has ended, unless the script failed
		<-done.Done()
		for _, f := range []*os.File{out, problems} {
			text, _ := os.ReadFile(f.Name())
			ts.Logf("%s:\n%s", f.Name(), text)
			_ = f.Close()
		}
	})
}

func sees(ts *testscript.TestScript, _ bool, args []string) {
	r, wanted := ts.Value("running").(*running), regexp.MustCompile("(?m)"+args[0])
	for last := false; ; last = r.done.Err() != nil {
		if wanted.MatchString(ts.ReadFile(args[1])) {
			return
		}
		if last {
			ts.Fatalf("the program has ended, and nothing in %s matches %s", args[1], wanted)
		}
		time.Sleep(20 * time.Millisecond) // nothing reports what another process writes
	}
}

func signalProgram(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	ts.Check(ts.Value("running").(*running).cmd.Process.Signal(signals[args[0]]))
}

func ends(ts *testscript.TestScript, _ bool, args []string) {
	r, begun := ts.Value("running").(*running), time.Now()
	<-r.done.Done()
	if got := r.cmd.ProcessState.String(); !strings.HasSuffix(got, " "+args[0]) && got != args[0] {
		ts.Fatalf("it ended with %s, want %s", got, args[0])
	}
	if took := time.Since(begun); len(args) > 1 && took > duration(ts, args[1]) {
		ts.Fatalf("it took %v", took)
	}
}

func duration(ts *testscript.TestScript, text string) time.Duration {
	d, err := time.ParseDuration(text)
	ts.Check(err)
	return d
}

// processes lists the processes of a script: they inherit the name of its directory.
func processes(ts *testscript.TestScript) string {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	ts.Check(err)
	var found strings.Builder
	for _, file := range environments {
		content, err := os.ReadFile(file)
		if err == nil && bytes.Contains(content, []byte("WORK="+ts.Getenv("WORK")+"\x00")) {
			commandLine, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")) // it may have just ended
			found.WriteString(string(bytes.ReplaceAll(commandLine, []byte{0}, []byte{' '})) + "\n")
		}
	}
	return found.String()
}

func runs(ts *testscript.TestScript, neg bool, names []string) {
	all := processes(ts)
	for _, name := range names {
		if strings.Contains(all, name) == neg {
			ts.Fatalf("%s: want that it runs: %t. There are\n%s", name, !neg, all)
		}
	}
}

func gone(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now()
	if len(args) > 0 {
		deadline = deadline.Add(duration(ts, args[0]))
	}
	for {
		all := processes(ts)
		if all == "" {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still running:\n%s", all)
		}
		time.Sleep(20 * time.Millisecond) // they are not children of this process
	}
}
