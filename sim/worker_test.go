// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// What is left of a worker that has died is its output: the part that says why is shown.
func TestPanicText(t *testing.T) {
	lines := strings.Repeat("line\n", 60)
	tests := map[string]struct{ output, want string }{
		"a panic":           {"some log\npanic: oh\ngoroutine 1", "panic: oh\ngoroutine 1"},
		"a data race first": {"panic: later\nWARNING: DATA RACE\nread by", "WARNING: DATA RACE\nread by"},
		"a fatal error":     {"x\nfatal error: concurrent map writes", "fatal error: concurrent map writes"},
		"a failed test":     {"x\n--- FAIL: TestX", "--- FAIL: TestX"},
		"at most 40 lines":  {"panic: oh\n" + lines, "panic: oh\n" + strings.TrimSuffix(strings.Repeat("line\n", 39), "\n")},
		"else its end":      {lines + "the end", strings.Repeat("line\n", 19) + "the end"},
		"nothing":           {"", ""},
	}
	for name, test := range tests {
		if got := panicText(test.output); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// A worker gets the flags of the test, and none of those that say what a test prints or writes.
func TestFlagsOfWorkers(t *testing.T) {
	t.Parallel()
	set := flag.NewFlagSet("", flag.ContinueOnError)
	for _, name := range []string{"operator", "unset", "simple", "test.v", "test.cpuprofile", "sim.plan", "test.short"} {
		set.String(name, "", "")
	}
	if err := set.Parse([]string{"-operator=a b", "-test.v=true", "-test.cpuprofile=x", "-sim.plan=y", "-test.short=true", "-simple", "z"}); err != nil {
		t.Fatal(err)
	}
	if got, want := flagsOf(set), []string{"-operator=a b", "-simple=z", "-test.short=true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHangText(t *testing.T) {
	output := "goroutine 7 [semacquire]:\nsync.Mutex.Lock(0x1)\nmain.f()"
	if got := hangText(output); !strings.HasSuffix(got, "; a goroutine waits for a mutex:\n"+output) {
		t.Errorf("got %q", got)
	}
	got := hangText("goroutine 7 [running]")
	if strings.Contains(got, "a goroutine waits for a mutex:") || !strings.HasPrefix(got, "the run did not end within 2m0s of real time: ") {
		t.Errorf("got %q", got)
	}
}

func TestTail(t *testing.T) {
	var out tail
	for range 10 {
		if n, err := out.Write([]byte(strings.Repeat("x", tailSize))); n != tailSize || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	if _, err := out.Write([]byte("the end")); err != nil {
		t.Error(err)
	}
	if got := out.String(); len(got) > 2*tailSize || !strings.HasSuffix(got, "xthe end") {
		t.Errorf("%d bytes are kept, the last ones are %q", len(got), got[len(got)-8:])
	}
}

func TestRunners(t *testing.T) {
	for plans, want := range map[int]int{0: 1, 1: 1, 20: 1} {
		if got := runners(plans); got != want {
			t.Errorf("%d plans have %d workers, want %d", plans, got, want)
		}
	}
	for _, processors := range []int{1, 3} {
		before := runtime.GOMAXPROCS(processors)
		if got := runners(1 << 20); got != processors {
			t.Errorf("very many plans have %d workers, want GOMAXPROCS=%d", got, processors)
		}
		runtime.GOMAXPROCS(before)
	}
}

func TestLines(t *testing.T) {
	if got := firstLines("a\nb\nc", 2); got != "a\nb" {
		t.Errorf("got %q", got)
	}
	if got := firstLines("a", 2); got != "a" {
		t.Errorf("got %q", got)
	}
	if got := lastLines([]string{"a", "b", "c"}, 2); strings.Join(got, "") != "bc" {
		t.Errorf("got %q", got)
	}
}

// child is set in the copies of the test binary in which a test calls Run.
const child = "CTRLKIT_TEST_CHILD"

// The simulation that the tests below run in a copy of this binary.
func TestChild(t *testing.T) {
	if os.Getenv(child) == "" {
		t.Skip("it is run by other tests")
	}
	w := copyWorkload()
	if os.Getenv(child) == "incomplete" {
		w.Operator = nil
	}
	if os.Getenv(child) == "no definitions" {
		w.CRDs = []string{"testdata/none"}
	}
	if os.Getenv(child) == "explored" {
		for _, w.Name = range []string{"one", "two"} {
			Explore(t, w)
		}
		return
	}
	Run(t, w)
}

func runChild(t *testing.T, mode string, args ...string) (output string, failed bool) {
	t.Helper()
	c := exec.Command(os.Args[0], append([]string{"-test.run=^TestChild$", "-test.v"}, args...)...)
	c.Env = append(os.Environ(), child+"="+mode)
	data, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(data), err != nil
}

// -sim.plan runs one plan in the process of the test, prints everything of it, and fails with what
// it violates.
func TestThePlanFlag(t *testing.T) {
	rings.Test(t, "simulates for a while")
	tests := map[string]struct {
		mode, plan string
		failed     bool
		want       []string
	}{
		"a plan that is survived": {"run", "crash after write 1", false, []string{
			"crash after write 1\n", "operator-2         start", "log of the operator:\n", "Starting Controller",
		}},
		"a plan that is not": {"run", "occupy the name before write 1", true, []string{
			"foreign-untouched: update secrets default/x-copy: the object was created by another client",
		}},
		"a place that is not there":   {"run", "crash after write 1000", true, []string{`the run never came to the place of "crash after write 1000"`}},
		"no plan":                     {"run", "crash at noon", true, []string{`sim: plan "crash at noon": unknown fault "crash at noon"`}},
		"a workload that is explored": {"explored", "crash after write 1", false, []string{"crash after write 1\n", "operator-2         start"}},
		"no operator":                 {"incomplete", "crash after write 1", true, []string{"sim: a Workload needs an Operator and a Script"}},
		"no definitions":              {"no definitions", "crash after write 1", true, []string{"sim: reading Workload.CRDs: ", "testdata/none"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			output, failed := runChild(t, test.mode, "-sim.plan="+test.plan)
			if failed != test.failed {
				t.Errorf("failed %t, want %t:\n%s", failed, test.failed, output)
			}
			for _, want := range test.want {
				if !strings.Contains(output, want) {
					t.Errorf("%q is not in the output:\n%s", want, output)
				}
			}
		})
	}
}

// -sim.workload leaves one of the workloads of a test, and the plan is run once.
func TestTheWorkloadFlag(t *testing.T) {
	rings.Test(t, "simulates for a while")
	for name, want := range map[string]int{"two": 1, "none": 0} {
		output, failed := runChild(t, "explored", "-sim.plan=crash after write 1", "-sim.workload="+name)
		if got := strings.Count(output, "log of the operator:\n"); failed || got != want {
			t.Errorf("%s: failed %t, and the plan was run %d times, want %d:\n%s", name, failed, got, want, output)
		}
	}
}

// The line that runs a plan again names the workload, where it has a name, and is one of a shell.
func TestTheLineThatRepeats(t *testing.T) {
	plan := mustParse(t, "crash after write 1")[0]
	for r, want := range map[repeat]string{
		{test: "TestX", dir: "./op"}:                         "go test ./op -run '^TestX$' -sim.plan='crash after write 1'",
		{test: "TestX/a", dir: "./op", workload: "a user's"}: `go test ./op -run '^TestX$/^a$' -sim.workload='a user'\''s' -sim.plan='crash after write 1'`,
	} {
		if got := r.line(plan); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Operators may leave goroutines where that is switched off: their workers are replaced in time,
// and none is taken for one that has died.
func TestWorkersThatLeak(t *testing.T) {
	rings.Test(t, "starts processes")
	w := copyWorkload()
	operate := w.Operator
	w.Operator = func(ctx context.Context, p *Process) error {
		go func() { <-make(chan struct{}) }()
		return operate(ctx, p)
	}
	r := prepare(t, w, []Option{WithoutOracle(oracle.NoGoroutineLeft, "a library leaves one")}, ".")
	if r == nil {
		return // this is a worker
	}
	plans := &runner{simulated: r.workers}
	defer plans.Stop()
	last := 0
	for i := range mostLeaks + 2 {
		o, err := plans.Run(t.Context(), fault.Plan{})
		if err != nil || o.Err != "" || len(o.Violations) > 0 {
			t.Errorf("run %d: %v, %q %v", i, err, o.Err, o.Violations)
		}
		if plans.worker == nil {
			last++
		}
	}
	if last != 1 {
		t.Errorf("%d workers have ended because of what was left, want 1", last)
	}
}

// Each worker has a profile of its own if the test has one, and none otherwise.
func TestProfilesOfWorkers(t *testing.T) {
	profile := flag.Lookup("test.cpuprofile")
	before := profile.Value.String()
	set := func(name string) {
		if err := profile.Value.Set(name); err != nil {
			t.Fatal(err)
		}
	}
	defer set(before)
	set("")
	if got := profileOf(); got != nil {
		t.Errorf("without a profile: got %q", got)
	}
	set("cpu.out")
	one, two := profileOf(), profileOf()
	if !strings.HasPrefix(one[0], "-test.cpuprofile=cpu.out.worker-") || one[0] == two[0] {
		t.Errorf("got %q and %q", one, two)
	}
}

// Workers read the definitions that the test has read.
func TestDefinitionsForWorkers(t *testing.T) {
	crds := []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}}
	line, err := writeShared(crds)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(strings.NewReader(line + "no fault\n"))
	got, err := readShared(in)
	if diff := cmp.Diff(crds, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if rest, _ := in.ReadString('\n'); rest != "no fault\n" {
		t.Errorf("the plans begin with %q", rest)
	}
	if _, err := readShared(in); err == nil {
		t.Error("no definitions at all are none")
	}
}

// problems is a test that keeps what is wrong with it.
type problems struct {
	testing.TB
	texts []string
}

func (p *problems) Errorf(format string, args ...any) {
	p.texts = append(p.texts, fmt.Sprintf(format, args...))
}

// A definition that is wrong fails the test although no run uses it.
func TestUnusedDefinitionsAreChecked(t *testing.T) {
	for name, want := range map[string]int{"": 0, "wrong": 1} {
		r := &Report{}
		if name != "" {
			r.crds = []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		}
		p := &problems{TB: t}
		r.checkDefinitions(p)()
		if len(p.texts) != want || want > 0 && !strings.Contains(p.texts[0], `sim: Workload.CRDs: definition "wrong"`) {
			t.Errorf("%q: got %q", name, p.texts)
		}
	}
}

// Run fails a test with what it finds, and with the line that runs the plan again.
func TestRunFails(t *testing.T) {
	rings.Test(t, "simulates for a while")
	output, failed := runChild(t, "run")
	if !failed {
		t.Error("the test has passed")
	}
	for _, want := range []string{
		"foreign-untouched: ", "with: occupy the name before write 1", "what happened:\n",
		"again: go test github.com/ctrlkit/ctrlkit/sim -run '^TestChild$' -sim.plan='occupy the name before write 1'", " single faults, 0 pairs, 3 without faults in other orders; ",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in the output:\n%s", want, output)
		}
	}
}

// passing is a test that ends when end is called.
type passing struct {
	testing.TB
	cleanups []func()
}

func (p *passing) Name() string     { return "TestOfAUser" }
func (p *passing) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *passing) end() {
	for _, f := range p.cleanups {
		f()
	}
	p.cleanups = nil
}

// Simulations are numbered within a test, and from the beginning when it runs again, as with go
// test -count=2: the worker's process runs it once.
func TestSimulationsAreNumberedAnew(t *testing.T) {
	p := &passing{TB: t}
	for run := range 2 {
		for want := 1; want <= 2; want++ {
			if got := nextSimulation(p); got != want {
				t.Errorf("run %d: got number %d, want %d", run+1, got, want)
			}
		}
		p.end()
	}
}

// A plan whose time other work has taken is no finding. One that spins, or waits for nothing, is.
func TestKeptFromWork(t *testing.T) {
	for _, tt := range []struct {
		name        string
		used, since time.Duration
		want        bool
	}{
		{"a third of the processor", planTime / 2, 3 * planTime, true},
		{"it spins", planTime, planTime, false},
		{"it spins beside other work", planTime, 3 * planTime, false},
		{"it is blocked", 0, planTime, false},
		{"it is blocked for long", time.Second, 3 * planTime, false},
	} {
		if got := keptFromWork(tt.used, tt.since); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// A plan that other work keeps from the processor has longer, and one that is stuck has not.
func TestMoreTime(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		patience, used, since time.Duration
		want                  time.Duration
	}{
		{"half of the processor", planTime, planTime / 2, planTime, planTime/2 + time.Second},
		{"all of it: it spins", planTime, planTime, planTime, 0},
		{"none of it: it is blocked", planTime, time.Second, planTime, 0},
		{"where it is not known", planTime, 0, planTime, 0},
		{"not for ever", planTime, planTime / 2, 3 * planTime, 0},
		{"the time of the exploration is over", planTime / 2, planTime / 4, planTime / 2, 0},
	} {
		if got := moreTime(tt.patience, tt.used, tt.since); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if runtime.GOOS == "linux" {
		before := processorTime(os.Getpid())
		for end := time.Now().Add(time.Minute); processorTime(os.Getpid()) == before; {
			if time.Now().After(end) {
				t.Fatal("it does not grow")
			}
		}
	}
}
