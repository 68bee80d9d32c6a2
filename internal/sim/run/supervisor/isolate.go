// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The beginnings of lines in which an isolated supervisor says what its program has tried to reach,
// and what it could not hide from it.
const (
	refusedPrefix = "\x00ctrlkit refused "
	visiblePrefix = "\x00ctrlkit visible "
)

// Isolation lets a program reach one address, and no other: it runs in a network of its own. A
// proxy in it refuses everything and names it; programs that use no proxy find no route. It also
// has file systems of its own, in which the directories where users keep files, credentials and
// sockets are empty, and an environment with nothing but what was given to it.
type Isolation struct {
	Socket  string // Unix socket outside, which leads to Address
	Address string // TCP address inside and outside, on the loopback interface

	// Refused is called with each host that the program has tried to reach by a proxy, and Visible
	// with each directory that this machine does not let us hide, and why. Both are called in the
	// process that starts the program.
	Refused, Visible func(text string) `json:"-"`

	Directory  string   // in which the program runs
	Hide, Keep []string // directories that are empty, and what stays in them
}

// Arguments returns what the supervisor is called with: two arguments.
func (i Isolation) Arguments() []string {
	text, _ := json.Marshal(i) //nolint:errcheck // it has strings only
	return []string{isolated, string(text)}
}

const isolated = "--isolated"

// parseIsolation reads the value of --isolated.
func parseIsolation(value string) (*Isolation, error) {
	i := &Isolation{}
	if err := json.Unmarshal([]byte(value), i); err != nil {
		return nil, fmt.Errorf("%s: %w", isolated, err)
	}
	return i, nil
}

// passed are the variables of the user's environment that isolated programs get, too.
var passed = regexp.MustCompile(`^(PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|USER|LOGNAME|HOME)=`)

// Environment returns what of the user's environment an isolated program gets.
func (i Isolation) Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return !passed.MatchString(v) })
}

// Around sets what is hidden, and what stays because the program was given it: its own files, the
// directory in which it runs, and files that its arguments and environment name.
func (i *Isolation) Around(argv, environment []string) error {
	var err error
	if i.Directory, err = os.Getwd(); err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	home, _ := os.UserHomeDir() //nolint:errcheck // then there is none to hide
	for _, dir := range []string{home, "/home", "/root", "/run", "/var/run", os.Getenv("XDG_RUNTIME_DIR"), "/tmp", "/var/tmp", os.TempDir()} {
		if real, err := filepath.EvalSymlinks(dir); err == nil && dir != "" && real != "/" && !slices.Contains(i.Hide, real) {
			i.Hide = append(i.Hide, real)
		}
	}
	i.Keep = []string{i.Directory, filepath.Dir(i.Socket)}
	for _, text := range slices.Concat(argv, environment) {
		_, value, _ := strings.Cut(text, "=")
		for _, path := range append([]string{text}, filepath.SplitList(value)...) {
			if _, err := os.Stat(path); path == "" || err != nil {
				continue
			}
			if path, err = filepath.Abs(path); err != nil {
				return fmt.Errorf("isolating the operator: %w", err)
			}
			i.Keep = append(i.Keep, path)
		}
	}
	if real, err := filepath.EvalSymlinks(argv[0]); err == nil {
		i.Keep = append(i.Keep, real)
		if prefix := filepath.Dir(filepath.Dir(real)); filepath.Base(filepath.Dir(real)) == "bin" && prefix != home && filepath.Base(prefix) != ".local" {
			i.Keep = append(i.Keep, prefix) // an interpreter has its library beside its bin
		}
	}
	return nil
}

// Heard passes the lines of a supervisor on, and what it says itself to the functions of i.
func (i Isolation) Heard(line func(string)) func(string) {
	return func(text string) {
		for prefix, f := range map[string]func(string){refusedPrefix: i.Refused, visiblePrefix: i.Visible} {
			if said, ok := strings.CutPrefix(text, prefix); ok {
				if f != nil {
					f(said)
				}
				return
			}
		}
		if line != nil {
			line(text)
		}
	}
}

// Forward makes Socket lead to Address, outside, until the returned function is called.
func (i Isolation) Forward() (stop func(), err error) {
	listener, err := net.Listen("unix", i.Socket)
	if err != nil {
		return nil, fmt.Errorf("isolating the operator: %w", err)
	}
	go forward(listener, "tcp", i.Address)
	return func() { _ = listener.Close() }, nil //nolint:errcheck // nothing was written
}

// enter is called in the network and the file systems of the program, before [Supervise] starts it
// on the same goroutine: it hides what is to be hidden, makes Address lead to Socket, and starts
// the proxy, whose address it puts into the environment. says receives what [Isolation.Refused] and
// [Isolation.Visible] are called with.
func (i Isolation) enter(says io.Writer) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	if err := i.hide(func(text string) { fmt.Fprintf(says, "%s%s\n", visiblePrefix, text) }); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", i.Address)
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	go forward(listener, "unix", i.Socket)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	go func() { _ = http.Serve(proxy, refusing(says)) }() //nolint:gosec,errcheck // in a network of its own, until the process ends
	address := "http://" + proxy.Addr().String()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if err := os.Setenv(name, address); err != nil {
			return fmt.Errorf("isolating the operator: %w", err)
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if err := os.Setenv(name, "127.0.0.1,localhost"); err != nil {
			return fmt.Errorf("isolating the operator: %w", err)
		}
	}
	return nil
}

func refusing(to io.Writer) http.Handler {
	var mu sync.Mutex
	known := map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !known[r.Host] {
			known[r.Host] = true
			fmt.Fprintf(to, "%s%s\n", refusedPrefix, r.Host)
		}
		http.Error(w, "ctrlkit: the operator runs on a copy of the cluster, and reaches nothing else", http.StatusForbidden)
	})
}

// forward passes connections on until the listener is closed.
func forward(listener net.Listener, network, address string) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close() //nolint:errcheck // nothing more is written
			out, err := net.Dial(network, address)
			if err != nil {
				return
			}
			defer out.Close() //nolint:errcheck // nothing more is written
			done := make(chan struct{}, 2)
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from) //nolint:errcheck // one of the two has gone
				done <- struct{}{}
			}
			go pass(out, in)
			go pass(in, out)
			<-done
		}()
	}
}
