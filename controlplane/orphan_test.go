// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A report lists what a child has started.
type report struct {
	PIDs        []int
	Directories []string
}

// beChild starts a control plane, reports, and waits to be killed.
func beChild(kind string) int {
	starters := map[string]func() (report, error){"package": startAsChild, "envtest": startEnvtestAsChild}
	found, err := starters[kind]()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

func startAsChild() (report, error) {
	plane, err := controlplane.Start(context.Background(), controlplane.Options{Parts: controlplane.AllParts})
	if err != nil {
		return report{}, err
	}
	found := report{Directories: []string{plane.Dir()}}
	for _, pid := range plane.PIDs() {
		found.PIDs = append(found.PIDs, pid)
	}
	return found, nil
}

func startEnvtestAsChild() (report, error) {
	assets, err := controlplane.FindAssets(context.Background(), 0, controlplane.BuildOptions{})
	if err != nil {
		return report{}, err
	}
	environment := &envtest.Environment{BinaryAssetsDirectory: assets.Dir}
	if _, err := environment.Start(); err != nil {
		return report{}, err
	}
	pids, err := childrenOf(os.Getpid())
	return report{
		PIDs:        pids,
		Directories: []string{environment.ControlPlane.Etcd.DataDir, environment.ControlPlane.APIServer.CertDir},
	}, err
}

func TestNothingRemainsOfAKilledStarter(t *testing.T) {
	for kind, processes := range map[string]int{"package": 5, "envtest": 2} {
		t.Run(kind, func(t *testing.T) {
			if kind == "envtest" {
				rings.Explore(t, "starts another control plane")
			}
			starts(t)
			found := startAndKill(t, kind)
			if len(found.PIDs) != processes {
				t.Errorf("the child had the processes %v, want %d", found.PIDs, processes)
			}
			eventually(t, "the processes to end", func(context.Context) error {
				remaining := slices.DeleteFunc(slices.Clone(found.PIDs), func(pid int) bool { return !runs(pid) })
				if len(remaining) > 0 {
					return fmt.Errorf("still running: %v", remaining)
				}
				return nil
			})
			for _, dir := range found.Directories {
				if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("directory %q: %v, want that it does not exist", dir, err)
				}
			}
		})
	}
}

// startAndKill runs this test binary as a child and kills it once it has reported.
func startAndKill(t *testing.T, kind string) report {
	t.Helper()
	executable, err := os.Executable()
	must(t, err)
	child := exec.CommandContext(t.Context(), executable)
	child.Env = append(os.Environ(), childVariable+"="+kind)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, readErr := bufio.NewReader(output).ReadBytes('\n')
	must(t, child.Process.Kill())
	child.Wait() //nolint:errcheck // it was killed
	if readErr != nil {
		t.Fatalf("reading the child's report: %v", readErr)
	}
	var found report
	must(t, json.Unmarshal(line, &found))
	for _, dir := range found.Directories {
		if !strings.HasPrefix(dir, os.TempDir()) {
			t.Fatalf("the child reports directory %q", dir)
		}
	}
	return found
}

// A stat is a line of ps.
type stat struct {
	pid, parent int
	state       string
}

// processes runs ps, which shows zombies as such: their reaper may be slow or, as in many
// containers, absent.
func processes() ([]stat, error) {
	var output bytes.Buffer
	ps := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=")
	ps.Stdout = &output
	if err := ps.Run(); err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var all []stat
	for line := range strings.Lines(output.String()) {
		fields := strings.Fields(line)
		pid, err1 := strconv.Atoi(fields[0])
		parent, err2 := strconv.Atoi(fields[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("listing processes: %w", err)
		}
		if pid != ps.Process.Pid {
			all = append(all, stat{pid: pid, parent: parent, state: fields[2]})
		}
	}
	return all, nil
}

func childrenOf(parent int) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range all {
		if p.parent == parent && !strings.HasPrefix(p.state, "Z") {
			pids = append(pids, p.pid)
		}
	}
	return pids, nil
}

func runs(pid int) bool {
	all, err := processes()
	return err != nil || slices.ContainsFunc(all, func(p stat) bool {
		return p.pid == pid && !strings.HasPrefix(p.state, "Z")
	})
}
