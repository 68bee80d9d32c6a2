// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package run_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The processes of a run in memory, and those that it does without.
var (
	everyProcessInMemory = everyProcess[:3]
	onlyOnControlPlane   = everyProcess[3:]
)

// These tests run the command itself, with an operator as a process of its own, in memory.
func TestRunInMemory(t *testing.T) {
	program := buildProgram(t)
	t.Run("until", func(t *testing.T) { runUntil(t, program) })
	t.Run("client", func(t *testing.T) { runWithClient(t, program) })
	t.Run("interrupt", func(t *testing.T) { runInterrupted(t, program) })
	t.Run("killed", func(t *testing.T) { runKilled(t, program) })
	t.Run("explain", func(t *testing.T) { runExplained(t, program) })
}

func runUntil(t *testing.T, program string) {
	r := start(t, program, "--on", "memory", "--until", "job/*=Complete count == 2", "--until", "greeter/world:status.phase=Greeted", "--timeout", "1m")
	r.until(t, `^ +\d+\.\ds  Pod space/moon-greeting-\w+  created, Pending$`)
	r.wantProcesses(t, everyProcessInMemory...)
	for _, name := range onlyOnControlPlane {
		if found := strings.Join(r.processes(t), "\n"); strings.Contains(found, name) {
			t.Errorf("%s runs:\n%s", name, found)
		}
	}
	if code := r.end(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{"✓ memory ", "→ limits         no container runs, no webhook is called, RBAC is not enforced;"} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("standard error does not say %q", want)
		}
	}
	r.wantNoProcesses(t, 0)
}

// kubeconfigOf reads standard error until the run says where its kubeconfig file is.
func kubeconfigOf(t *testing.T, stderr io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if found := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // it ends with the process
			return found[1]
		}
	}
	t.Fatalf("the run does not say where its kubeconfig file is: %v", lines.Err())
	return ""
}

// startToUse starts a run that a test uses, and returns its kubeconfig file.
func startToUse(t *testing.T, program, operator string, args ...string) (*running, string) {
	t.Helper()
	reader, writer := io.Pipe()
	r := startWith(t, writer, program, operator, append([]string{"--on", "memory"}, args...)...)
	return r, kubeconfigOf(t, reader)
}

// What kubectl asks for is answered while the operator runs, and what it deletes is collected.
func runWithClient(t *testing.T, program string) {
	r, kubeconfig := startToUse(t, program, "./testdata/greeter")
	r.until(t, "Greeter default/world  Greeted$")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(ask(t, config, "GET", "/apis/test.ctrlkit.dev/v1/namespaces/default/greeters"), &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 || len(table.ColumnDefinitions) != 2 || table.Rows[0].Cells[0] != "world" || table.ColumnDefinitions[1].Name != "Age" {
		t.Errorf("the table of Greeters is %+v", table)
	}
	ask(t, config, "DELETE", "/apis/test.ctrlkit.dev/v1/namespaces/default/greeters/world")
	r.until(t, "Job default/world-greeting  deleted$")
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.end(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if _, err := os.Stat(kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig file remains: %v", err)
	}
}

// ask sends a request as kubectl does.
func ask(t *testing.T, config *rest.Config, method, path string) []byte {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, body, err)
	}
	return body
}

func runInterrupted(t *testing.T, program string) {
	r := start(t, program, "--on", "memory", "--until", "greeter/world=Gone")
	r.until(t, "Greeter default/world  Greeted$")
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.end(t); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	r.wantNoProcesses(t, 0)
}

func runKilled(t *testing.T, program string) {
	r := start(t, program, "--on", "memory", "--", "--spawn", "exec sleep 1003")
	r.until(t, "Greeter default/world  Greeted$")
	r.wantProcesses(t, append([]string{"sleep 1003"}, everyProcessInMemory...)...)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	r.wantNoProcesses(t, killedWithin)
}

// An operator in memory explains its objects as one in a cluster does. The examples are another module.
func runExplained(t *testing.T, program string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil { // the operator takes the port
		t.Fatal(err)
	}
	example, err := filepath.Abs("../../examples/02_simple")
	if err != nil {
		t.Fatal(err)
	}
	r, kubeconfig := startToUse(t, program, example, "--", "--metrics-bind-address="+address)
	r.until(t, "Simple default/one-by-zero  .*divisor")
	cmd := exec.CommandContext(t.Context(), program, "explain", "simple/one-by-zero", "--endpoint", "http://"+address, "--kubeconfig", kubeconfig)
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, want := range []string{"Simple default/one-by-zero", "What to do", "divisor"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the explanation does not say %q:\n%s", want, output)
		}
	}
}
