// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// An operator is the program of an example. It is restarted whenever it ends.
type operator struct {
	binary string
	args   []string // of the first process
	always []string // arguments of each process
	name   string   // each process has it with a number; empty for that of the program
	env    []string
	log    *logScan

	restarts chan restart

	mu      sync.Mutex // guards what follows
	pid     int        // 0 while it does not run
	starts  int
	kills   int
	allowed allowance
	crashes []violation // each end that was neither a kill nor allowed
}

// An allowance is an end that is none of the operator's mistakes.
type allowance struct {
	until time.Time
	says  string // what it says last; empty for anything
}

// A restart is the wish for a kill.
type restart struct {
	down    time.Duration // before it is started again
	args    []string      // of the next process
	started chan struct{} // closed then
}

func newOperator(binary string, env []string, log *logScan) *operator {
	return &operator{binary: binary, env: env, log: log, restarts: make(chan restart)}
}

// run keeps the program running until ctx is done, and ends it then.
func (o *operator) run(ctx context.Context) {
	runtime.LockOSThread() // Linux ends the process with the thread that has started it
	defer runtime.UnlockOSThread()
	var started chan struct{} // to be closed when the next process runs
	args := o.args
	for ctx.Err() == nil {
		cmd, ended, err := o.start(args)
		if err != nil {
			o.crashed(err)
			_ = sleepUntil(ctx, time.Now().Add(time.Second)) // the loop checks ctx
			continue
		}
		if started != nil {
			close(started)
			started = nil
		}
		select {
		case <-ctx.Done():
			o.end(cmd, ended)
		case wish := <-o.restarts:
			o.end(cmd, ended)
			o.mu.Lock()
			o.kills++
			o.mu.Unlock()
			started, args = wish.started, wish.args
			_ = sleepUntil(ctx, time.Now().Add(wish.down)) // the loop checks ctx
		case err := <-ended:
			o.crashed(errors.New(describeEnd(err)))
			_ = sleepUntil(ctx, time.Now().Add(time.Second)) // the loop checks ctx
		}
	}
}

// wasKilled reports whether SIGKILL ended a process, given what Wait returned.
func wasKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func describeEnd(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func (o *operator) start(args []string) (*exec.Cmd, <-chan error, error) {
	o.log.cut()
	cmd := exec.Command(o.binary, slices.Concat(o.always, args)...)
	o.mu.Lock()
	o.starts++
	if o.name != "" {
		cmd.Args[0] = o.processNameLocked()
	}
	o.mu.Unlock()
	cmd.Env = append(os.Environ(), o.env...)
	cmd.Stdout, cmd.Stderr = o.log, o.log
	cmd.SysProcAttr = processAttributes()
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting the operator: %w", err)
	}
	o.mu.Lock()
	o.pid = cmd.Process.Pid
	o.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd, ended, nil
}

// end kills the process. One that had ended before is a crash.
func (o *operator) end(cmd *exec.Cmd, ended <-chan error) {
	_ = cmd.Process.Signal(syscall.SIGKILL) // it fails if the process has ended already
	if err := <-ended; !wasKilled(err) {
		o.crashed(errors.New(describeEnd(err)))
	}
	o.mu.Lock()
	o.pid = 0
	o.mu.Unlock()
}

func (o *operator) crashed(err error) {
	last := o.log.last()
	evidence := fmt.Sprintf("at %s the operator ended by itself: %v; its last lines: %s", clock(time.Now()), err, last)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pid = 0
	if time.Now().Before(o.allowed.until) && strings.Contains(last, o.allowed.says) {
		return
	}
	o.crashes = append(o.crashes, violation{object: "operator", lane: noLane, evidence: evidence})
}

// kill sends SIGKILL, and returns when the program runs again with the given arguments.
func (o *operator) kill(ctx context.Context, down time.Duration, args ...string) error {
	wish := restart{down: down, args: args, started: make(chan struct{})}
	select {
	case o.restarts <- wish:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-wish.started:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayEnd says that an end until then, after which the log says something, is expected.
func (o *operator) mayEnd(until time.Time, says string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.allowed = allowance{until, says}
}

// processName returns by what name the API server knows the process that runs: its user agent
// begins with it.
func (o *operator) processName() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.processNameLocked()
}

func (o *operator) processNameLocked() string { return fmt.Sprintf("%s-%d", o.name, o.starts) }

// awaitAnother waits until a process runs that is not the one of that name.
func (o *operator) awaitAnother(ctx context.Context, name string) error {
	for o.process() == 0 || o.processName() == name {
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return fmt.Errorf("waiting for the end of %s: %w", name, err)
		}
	}
	return nil
}

// ends returns the ends that were neither kills nor expected.
func (o *operator) ends() []violation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.crashes)
}

func (o *operator) killed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kills
}

// process returns the id of the process, and zero while the program does not run.
func (o *operator) process() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pid
}

// memory returns the resident memory in bytes, and zero where that can't be found out: on systems
// without /proc, and while the program does not run.
func (o *operator) memory() int64 {
	pid := o.process()
	if pid == 0 {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return residentIn(string(status))
}

// residentIn reads the resident memory from a file status of /proc.
func residentIn(status string) int64 {
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fields := strings.Fields(text)
			if len(fields) == 2 && fields[1] == "kB" {
				kib, _ := strconv.ParseInt(fields[0], 10, 64) // zero means unknown
				return kib << 10
			}
		}
	}
	return 0
}

// requestsAt reads how many requests processes have made so far, by verb, from their metrics.
func requestsAt(ctx context.Context, addresses []string) (map[string]int, error) {
	sum := map[string]int{}
	for _, address := range addresses {
		of, err := requestsOf(ctx, address)
		if err != nil {
			return nil, err
		}
		for verb, n := range of {
			sum[verb] += n
		}
	}
	return sum, nil
}

func requestsOf(ctx context.Context, address string) (map[string]int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the operator: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	return requestsIn(response.Body)
}

func requestsIn(metrics io.Reader) (map[string]int, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the operator: %w", err)
	}
	byVerb := make(map[string]int)
	for _, metric := range families["rest_client_requests_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "method" {
				byVerb[label.GetValue()] += int(metric.GetCounter().GetValue())
			}
		}
	}
	return byVerb, nil
}

// requestsBetween says how many requests were made from one reading to a later one.
func requestsBetween(earlier, later map[string]int) string {
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(later)) {
		if n := later[verb] - earlier[verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verb))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// freeAddress returns an address on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent
	return l.Addr().String(), nil
}

// clock is how times are printed.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
