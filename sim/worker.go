// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// Plans are run by processes of their own, copies of the test binary: a panic or a data race then
// costs one plan and not the test, what the operator keeps in package variables does not flow from
// plan to plan on several cores at once, and sources of random numbers that are global can be
// seeded.

// The environment of a worker.
const (
	workerVariable = "CTRLKIT_SIM_WORKER" // which of the simulations of the process is meant: its number
	workerResults  = 3                    // the file descriptor that results are written to
)

// An answer is what a worker reports of a plan, a line of JSON.
type answer struct {
	explore.Outcome
	Last  bool     `json:",omitempty"` // the worker ends after this plan
	Marks []string `json:",omitempty"` // after which the run has shown nothing
}

// simulations counts the calls of Run in this process, by test.
var simulations = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// nextSimulation returns the number of a simulation within its test. A worker counts anew, so that
// a test that runs again in the same process (go test -count) must do so, too.
func nextSimulation(t testing.TB) int {
	simulations.Lock()
	defer simulations.Unlock()
	test := t.Name()
	if simulations.of[test] == 0 {
		t.Cleanup(func() {
			simulations.Lock()
			defer simulations.Unlock()
			delete(simulations.of, test)
		})
	}
	simulations.of[test]++
	return simulations.of[test]
}

// work runs the plans that come in, until there are no more.
func work(t *testing.T, w *Workload, s *settings) {
	managers.DropQueueMetrics()
	signal.Ignore(os.Interrupt) // a terminal sends it to all processes: the one that has started this one ends it
	results := os.NewFile(workerResults, "results")
	defer results.Close() //nolint:errcheck // the process ends with it
	encoder := json.NewEncoder(results)
	news := newNeeds{}
	in := bufio.NewReader(os.Stdin)
	crds, err := readShared(in)
	if err != nil {
		t.Fatal(err)
	}
	ref, _, err := findReference(t, w, crds, s)
	if err != nil {
		t.Fatalf("the run without faults does not work in a worker: %v", err)
	}
	collectLess()
	if ref != nil {
		ref.joins = map[string]bool{}
	}
	leaks := 0
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		text, marks := splitLine(lines.Text())
		ref.addMarks(marks)
		o := answer{Outcome: explore.Outcome{Plan: text}}
		if plan, err := fault.ParsePlan(o.Plan); err != nil {
			o.Err = err.Error()
		} else if result, err := runPlan(t, w, crds, plan, ref, s.silent()); err != nil {
			o.Err = err.Error()
		} else {
			o.Violations, o.Writes = ref.news(plan, result.violations, result.writes)
			o.Marks, o.Joined = result.run.joint.cleanMarks(o.Violations), result.run.joint.joined
			o.Violations, o.Writes, o.Meant = s.split(plan, o.Violations, o.Writes)
			o.Fired, o.Requests, o.Needs = result.fired, result.requests, news.of(result.needs)
			if len(o.Violations) > 0 {
				o.Trace, o.Logs = result.trace.String(), lastLines(result.trace.Logs(), 40)
			}
			if result.leaked {
				leaks++
			}
		}
		o.Last = leaks >= mostLeaks
		if err := encoder.Encode(o); err != nil {
			t.Fatal(err)
		}
		if o.Last {
			return
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("reading the plans: %v", err)
	}
}

// A worker gets what is the same for all workers as a line of JSON, before the plans: that takes a
// tenth of the time in which YAML is read.
type sharedByWorkers struct {
	CRDs    []*apiextensionsv1.CustomResourceDefinition
	Builtin []byte // of the server, see [apiserver.EncodeBuiltin]
}

func writeShared(crds []*apiextensionsv1.CustomResourceDefinition) (line string, err error) {
	b := sharedByWorkers{CRDs: crds}
	if b.Builtin, err = apiserver.EncodeBuiltin(); err != nil {
		return "", err
	}
	data, err := json.Marshal(b)
	if err != nil {
		return "", fmt.Errorf("encoding the definitions for the workers: %w", err)
	}
	return string(data) + "\n", nil
}

func readShared(in *bufio.Reader) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var b sharedByWorkers
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &b)
	}
	if err == nil {
		err = apiserver.DecodeBuiltin(b.Builtin)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	return b.CRDs, nil
}

// mostLeaks is how many plans of a worker may leave goroutines. Nothing wakes these any more, but
// they keep the memory of their run.
const mostLeaks = 20

// garbage is how much garbage a worker makes, about, before it collects it. More of it does not make
// plans faster, as new memory costs time, too.
const garbage = 128 << 20

// collectLess makes collections rarer. The cost of one depends on the memory in use, which is as
// much as a plan makes in a moment: most of it are the definitions and schemas that all plans
// share.
func collectLess() {
	runtime.GC()
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	debug.SetGCPercent(max(400, int(100*garbage/stats.HeapAlloc)))
}

func lastLines(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

// worker is a process that runs plans.
type worker struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	results *os.File
	stderr  *tail
	before  string // what is written to it before the first plan
	marks   int    // how many marks of other workers it knows
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if len(t.data) > 2*tailSize {
		t.data = append([]byte(nil), t.data[len(t.data)-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}

func startWorker(test string, simulation int, definitions string) (*worker, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	pattern := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	// One worker per core runs faster than goroutines on all of them, and a bubble lives for a moment:
	// collecting its garbage early is wasted work.
	c := exec.Command(os.Args[0], slices.Concat(profileOf(), flagsOf(flag.CommandLine), []string{"-test.run=" + pattern, "-test.timeout=0", "-test.count=1"}, flag.Args())...)
	c.Env = append(os.Environ(), workerVariable+"="+strconv.Itoa(simulation), "GOMAXPROCS=1", "GOGC=400",
		"GORACE=halt_on_error=1 "+os.Getenv("GORACE"))
	c.ExtraFiles = []*os.File{w}
	output := &tail{}
	c.Stdout, c.Stderr = output, output
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	return &worker{command: c, in: in, out: bufio.NewReaderSize(r, 1<<20), results: r, stderr: output, before: definitions}, nil
}

// profiles counts the profiles of workers.
var profiles atomic.Int64

// profileOf returns the flags with which a worker writes a profile of its own, beside that of this
// process, if there is one: a profile shows one process only.
func profileOf() []string {
	profile := flag.Lookup("test.cpuprofile")
	if profile == nil || profile.Value.String() == "" {
		return nil
	}
	flags := []string{fmt.Sprintf("-test.cpuprofile=%s.worker-%d", profile.Value, profiles.Add(1))}
	if dir := flag.Lookup("test.outputdir"); dir != nil && dir.Value.String() != "" {
		flags = append(flags, "-test.outputdir="+dir.Value.String())
	}
	return flags
}

// flagsOf returns the flags that are set and that the test itself may depend on, so that a worker
// comes to the same simulations.
func flagsOf(set *flag.FlagSet) []string {
	var flags []string
	set.Visit(func(f *flag.Flag) {
		own, _, _ := strings.Cut(f.Name, ".")
		if f.Name == "test.short" || own != "test" && own != "sim" {
			flags = append(flags, "-"+f.Name+"="+f.Value.String())
		}
	})
	return flags
}

// planTime is how long a plan may take in real time: after that its process is killed, unless other
// work of the machine has kept it from the processor. It is not an expectation, only an end.
const planTime = 2 * time.Minute

// run lets the worker run a plan, which may take up to a time. The output of a worker that dies of
// the plan says what was violated.
func (w *worker) run(plan string, marks []string, patience time.Duration) (o answer, alive bool) {
	var hung atomic.Bool
	started, before := time.Now(), processorTime(w.command.Process.Pid)
	var timer *time.Timer
	timer = time.AfterFunc(patience, func() {
		if more := moreTime(patience, processorTime(w.command.Process.Pid)-before, time.Since(started)); more > 0 {
			timer.Reset(more)
			return
		}
		hung.Store(true)
		_ = w.command.Process.Signal(abortSignal) //nolint:errcheck // it may have ended just now
		time.AfterFunc(5*time.Second, func() { _ = w.command.Process.Kill() })
	})
	// Results have a pipe of their own: the operator and the test may print.
	_, err := io.WriteString(w.in, w.before+joinLine(plan, marks))
	w.before = ""
	var line []byte
	if err == nil {
		line, err = w.out.ReadBytes('\n')
	}
	timer.Stop()
	if hung.Load() && err != nil {
		used := processorTime(w.command.Process.Pid) - before
		_ = w.command.Wait() //nolint:errcheck // it was killed
		if patience < planTime || keptFromWork(used, time.Since(started)) {
			return answer{Outcome: explore.Outcome{Unfinished: true}}, false
		}
		return violating(plan, oracle.BecomesIdle, hangText(w.stderr.String())), false
	}
	if err != nil {
		waitErr := w.command.Wait()
		if waitErr == nil {
			return unable(plan, "the worker has ended without a result: the test has to come to the same simulations in each run\n"+w.stderr.String()), false
		}
		return violating(plan, oracle.NoPanic, fmt.Sprintf("the process of the operator ended: %v\n%s", waitErr, panicText(w.stderr.String()))), false
	}
	if err := json.Unmarshal(line, &o); err != nil {
		return unable(plan, fmt.Sprintf("reading a result: %v", err)), true
	}
	return o, true
}

// violating returns the answer of a worker that has died of a plan.
func violating(plan string, name oracle.Name, text string) answer {
	return answer{Outcome: explore.Outcome{Plan: plan, Violations: []oracle.Violation{{Oracle: name, Text: text}}}}
}

// unable returns the answer for a plan that could not be run.
func unable(plan, why string) answer { return answer{Outcome: explore.Outcome{Plan: plan, Err: why}} }

// moreTime returns how much longer a plan may run whose time is over: so long that it can have planTime
// of the processor, if it has had less because of other work. A plan that has not used the processor
// waits for nothing that comes.
func moreTime(patience, used, since time.Duration) time.Duration {
	if patience < planTime || used < planTime/20 || used >= planTime || since >= 3*planTime {
		return 0
	}
	return planTime - used + time.Second
}

// keptFromWork reports whether a plan was ended because other work has kept it from the processor
// for so long that its time says nothing about the operator.
func keptFromWork(used, since time.Duration) bool {
	return since >= 3*planTime && used >= planTime/20 && used < planTime
}

// processorTime returns how much of the processor a process has used, zero where that is not known.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	if errors.Join(errUser, errSystem) != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond // Linux has 100 ticks a second
}

func hangText(output string) string {
	text := fmt.Sprintf("the run did not end within %s of real time: a goroutine spins without time passing, or waits for a mutex that another one holds during a request", planTime)
	if i := strings.Index(output, "sync.Mutex.Lock"); i >= 0 {
		text += "; a goroutine waits for a mutex:\n" + firstLines(output[max(0, i-60):], 30)
	}
	return text
}

// panicText is the part of the output of a process that has died which says why.
func panicText(output string) string {
	for _, mark := range []string{"WARNING: DATA RACE", "panic:", "fatal error:", "--- FAIL"} {
		if i := strings.Index(output, mark); i >= 0 {
			return firstLines(output[i:], 40)
		}
	}
	lines := strings.Split(output, "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(s, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

func (w *worker) stop() {
	_ = w.in.Close()      //nolint:errcheck // it may have ended already
	_ = w.command.Wait()  //nolint:errcheck // all results have been read
	_ = w.results.Close() //nolint:errcheck // only read from
}
