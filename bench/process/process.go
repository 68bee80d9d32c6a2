// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// poll is how often an operator is asked while something is waited for. To wake up and to answer
// costs an idle operator a millisecond on a virtual machine.
const poll = 50 * time.Millisecond

// A Process is an operator that runs. Its methods must not be called concurrently.
type Process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	stderr  *tail
}

// Start runs the program of an operator, and returns when its caches are filled. The context bounds
// the life of the process.
func Start(ctx context.Context, program string, settings Settings) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, program, settings.arguments()...), stderr: &tail{}}
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the operator %s: %w", settings.Operator, err)
	}
	p.answers = json.NewDecoder(out)
	var ready Stats
	if err := p.answers.Decode(&ready); err != nil {
		stopped := p.Stop() // then all that the process wrote has been read
		return nil, errors.Join(fmt.Errorf("starting the operator %s: reading its answer: %w%s", settings.Operator, err, p.stderr), stopped)
	}
	return p, nil
}

// Stop ends the process, and returns when it has ended. The memory of a process that is killed is
// free at once; nothing is cleaned up that an operator must be able to do without.
func (p *Process) Stop() error {
	_ = p.in.Close()         // the process may have ended
	_ = p.cmd.Process.Kill() // the same
	if err := p.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return fmt.Errorf("waiting for the end of an operator: %w", err)
	}
	return nil
}

// Stats returns what the process has done since it started.
func (p *Process) Stats() (Stats, error) { return p.ask(askStats) }

// Heap returns the Stats with the size of the heap, after a garbage collection.
func (p *Process) Heap() (Stats, error) { return p.ask(askHeap) }

// Profile writes a CPU profile of the process to a file, until EndProfile is called.
func (p *Process) Profile(file string) error {
	_, err := p.ask(askProfile + file)
	return err
}

// EndProfile completes the file of the last Profile.
func (p *Process) EndProfile() error {
	_, err := p.ask(endProfile)
	return err
}

// HeapProfile writes a profile of the heap, as it was after the last garbage collection, to a file.
// See [Settings.Profiled].
func (p *Process) HeapProfile(file string) error {
	_, err := p.ask(askAllocs + file)
	return err
}

func (p *Process) ask(question string) (Stats, error) {
	if _, err := io.WriteString(p.in, question+"\n"); err != nil {
		return Stats{}, fmt.Errorf("asking an operator: %w%s", err, p.stderr)
	}
	return p.answer()
}

func (p *Process) answer() (Stats, error) {
	var stats Stats
	if err := p.answers.Decode(&stats); err != nil {
		return Stats{}, fmt.Errorf("reading the answer of an operator: %w%s", err, p.stderr)
	}
	return stats, nil
}

// Await asks until done returns true for an answer, and returns that answer.
func (p *Process) Await(ctx context.Context, what string, done func(Stats) bool) (Stats, error) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		stats, err := p.Stats()
		if err != nil || done(stats) {
			return stats, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return stats, fmt.Errorf("waiting for %s: %w: %+v%s", what, ctx.Err(), stats, p.stderr)
		}
	}
}

// AwaitIdle returns when the operator has neither sent a request nor ended a reconcile for d. The
// field Quiet of the Stats is the time since the later of both; a reconcile is noticed some 50
// milliseconds late.
func (p *Process) AwaitIdle(ctx context.Context, d time.Duration) (Stats, error) {
	reconciles, since := -1, time.Now()
	stats, err := p.Await(ctx, "an idle operator", func(stats Stats) bool {
		if stats.Reconciles != reconciles {
			reconciles, since = stats.Reconciles, time.Now()
		}
		return stats.Quiet >= d && time.Since(since) >= d
	})
	stats.Quiet = min(stats.Quiet, time.Since(since))
	return stats, err
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // for text
	text []byte
}

const tailBytes = 4096

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

// String returns the end, introduced, or nothing if nothing was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return ""
	}
	return "; the operator wrote:\n" + strings.TrimSpace(string(t.text))
}

// PeakMemory returns the most memory that the process has had resident, in bytes. It is known on Linux.
func (p *Process) PeakMemory() (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("asking for the memory of an operator: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes uint64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); n == 1 { //nolint:errcheck // another line
			return kilobytes << 10, nil
		}
	}
	return 0, errors.New("the memory of an operator is not known")
}
