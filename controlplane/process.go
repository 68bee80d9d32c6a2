// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
)

// A process is a running program of the control plane.
type process struct {
	name    string
	log     string // path of its log
	command *exec.Cmd

	ended chan struct{} // closed when it has ended; err is set by then
	err   error         // how it ended
}

// startProcess starts a program whose output goes to a file in logDir. It runs in a process group
// of its own, so that Ctrl-C in the terminal does not stop servers before their clients.
func startProcess(path, logDir string, args, environment []string) (*process, error) {
	name := filepath.Base(path)
	logName := filepath.Join(logDir, name+".log")
	log, err := private.Append(logName)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer log.Close() // the child has its own descriptor
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), environment...)
	command.SysProcAttr = ownProcessGroup()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, log: logName, command: command, ended: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// failure describes how the process ended, with the last lines of its log. It may be called only
// when the process has ended.
func (p *process) failure() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	said := tailOfFile(p.log)
	if said == "" {
		said = "(nothing)"
	}
	return fmt.Errorf("%s ended: %s; its last lines:\n%s", p.name, how, said)
}

// kill kills the process and waits until it has ended. The data is removed with the control plane,
// so that an orderly shutdown would save nothing.
func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s (process %d): %w", p.name, p.command.Process.Pid, err)
	}
	<-p.ended
	return nil
}

// orphanEnvironment passes the programs the id of this process, and the directory to remove if it
// ends without stopping them. See package orphan of the programs' module.
func orphanEnvironment(dir directory) []string {
	return []string{
		"CTRLKIT_PARENT_PID=" + strconv.Itoa(os.Getpid()),
		"CTRLKIT_REMOVE_WHEN_ORPHANED=" + string(dir),
		"CTRLKIT_OUTLIVE_PARENT=",
	}
}

// poll calls check at once and then every interval, until it returns nil, ctx ends or dead is
// closed. In the latter cases, poll returns the last error that check returned in time.
func poll(ctx context.Context, interval time.Duration, dead <-chan struct{}, check func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var answer error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if answer == nil || ctx.Err() == nil {
			answer = err
		}
		select {
		case <-ticker.C:
		case <-dead:
			return answer
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), answer)
		}
	}
}
